import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.validation import Finding


@dataclass(frozen=True, kw_only=True)
class Place:
    file: str
    """As seen from here."""
    line: int | None
    path: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where} {self.path}" if self.path else where


def place_of(finding: Finding, *, checked: Path) -> Place:
    """Place of a finding; the path of a finding in a template begins with its file."""
    file, _, path = finding.path.rpartition("#")
    return Place(file=os.path.relpath(file or checked), line=finding.line, path=path)
