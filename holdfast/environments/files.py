from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "environments"


class NoSuchEnvironmentError(Exception):
    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        super().__init__(
            f"there is no environment {name!r}; allowed: a path to a YAML file, or one of: {', '.join(known)}"
        )
        self.known = known
        """The names that there are."""


def environment_file(name: str, *, folder: Path = FOLDER) -> Path:
    """Return the file of a name in environments/, or of a path such as ``./NAME``. Raises: NoSuchEnvironmentError."""
    named: tuple[Path, ...] = (folder / f"{name}.yaml",) if Path(name).name == name else ()
    for candidate in (*named, Path(name)):
        if candidate.is_file():
            return candidate.resolve()
    raise NoSuchEnvironmentError(name, known=tuple(sorted(each.stem for each in folder.glob("*.yaml"))))
