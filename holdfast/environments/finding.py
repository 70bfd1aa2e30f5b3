"""From what a user calls an environment to its file."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "environments"


class NoSuchEnvironmentError(Exception):
    """No file goes by this name."""

    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        super().__init__(
            f"there is no environment {name!r}; allowed: a path to a YAML file, or one of: {', '.join(known)}"
        )
        self.known = known
        """The names that there are."""


def environment_file(name: str, *, folder: Path = FOLDER) -> Path:
    """
    The file that ``name`` stands for: that of the folder if it has one of this name, otherwise the one at this path.

    A name means the same in every working folder; ``./NAME`` is always a path.

    Raises:
        NoSuchEnvironmentError: there is no such file.
    """
    named: tuple[Path, ...] = (folder / f"{name}.yaml",) if Path(name).name == name else ()
    for candidate in (*named, Path(name)):
        if candidate.is_file():
            return candidate.resolve()
    raise NoSuchEnvironmentError(name, known=tuple(sorted(each.stem for each in folder.glob("*.yaml"))))
