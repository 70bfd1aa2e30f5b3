import json
from dataclasses import dataclass

LONGEST_VALUE = 60


@dataclass(frozen=True, kw_only=True)
class Problem:
    file: str
    line: int
    """Counted from 1; 0 when the file could not be read at all."""
    path: str
    """The setting, such as ``cluster.instance_groups.1.instance_count``; empty for the file as a whole."""
    given: str
    allowed: str
    fix: str
    code: str = "HF004"
    """The finding that it is, as `holdfast explain` takes it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        where = f"{place}: {self.path}" if self.path else place
        return f"{where}: got {self.given}; allowed: {self.allowed}; {self.fix}"


class EnvironmentFileError(Exception):
    """Refused environment file: one line per problem, in the file's order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.line, problem.path))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def plain(text: str) -> str:
    """Name, in JSON's escapes if not printable."""
    return text if text.isprintable() and len(text) <= LONGEST_VALUE else shown(text)


def dotted(location: tuple[str | int, ...]) -> str:
    return ".".join(plain(str(part)) for part in location)
