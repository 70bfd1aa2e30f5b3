import contextlib
from pathlib import Path

from holdfast_common import closest_word

_SHIPPED = Path(__file__).resolve().parent / "examples"

EXAMPLES = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).resolve().parents[2] / "environments"
"""Environments that Holdfast brings: in the wheel beside this file, in a checkout at its top."""
FOLDER = "environments"
SETTINGS = "cdk.json"


class NoSuchEnvironmentError(Exception):
    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        meant = closest_word(name, known)
        near = f"did you mean {meant}? " if meant else ""
        super().__init__(
            f"there is no environment {name!r}; {near}allowed: a path to a YAML file, or one of: {', '.join(known)}"
        )
        self.known = known
        """The names that there are."""


def environment_file(name: str, *, folder: Path | None = None) -> Path:
    """
    Return the file of an environment.

    A name is looked for in ``environments/`` of the user's repository, then among Holdfast's examples, then as a path.
    So a name means the same in every folder of a repository; ``./NAME`` is always a path.

    Args:
        folder: The only folder to look for names in. Default: both of the above.

    Raises:
        NoSuchEnvironmentError: there is no such file.
    """
    folders = _folders() if folder is None else (folder,)
    named = [each / f"{name}.yaml" for each in folders] if Path(name).name == name else []
    for candidate in (*named, Path(name)):
        if candidate.is_file():
            return candidate.resolve()
    raise NoSuchEnvironmentError(name, known=_names_in(folders))


def environment_names() -> tuple[str, ...]:
    """Return the names that ``environment_file`` finds from the working folder, sorted."""
    return _names_in(_folders())


def repository_of(file: Path) -> Path | None:
    """Return the repository that an environment file belongs to: the folder with ``cdk.json`` and ``environments/``."""
    folder = file.resolve().parent
    return folder.parent if folder.name == FOLDER and (folder.parent / SETTINGS).is_file() else None


def _names_in(folders: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(sorted({file.stem for each in folders for file in each.glob("*.yaml")}))


def _folders() -> tuple[Path, ...]:
    """``environments/`` of the repository that the working folder is in, if there is one, and the examples."""
    with contextlib.suppress(OSError):  # a working folder that was removed
        here = Path.cwd()
        for repository in (here, *here.parents):
            if (repository / SETTINGS).is_file() and (repository / FOLDER).is_dir():
                return (repository / FOLDER, EXAMPLES)
    return (EXAMPLES,)
