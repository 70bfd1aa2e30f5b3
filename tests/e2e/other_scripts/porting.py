"""
Training scripts of other repositories and their ports, as instructions on the lines of the published files.

An instruction is a line of text; numbers are those of the published file, so nothing of it is repeated here:

    12 = TEXT       line 12 becomes TEXT; 12-15 for several
    12 + TEXT       TEXT comes behind line 12; 0 for the beginning
    12-15 -         these lines go
    12-15 >         these lines are indented by four columns

A changed line is one that the port writes, as in ``examples/ported``: deleting and indenting count for nothing.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).with_name("scripts.yaml")
MOST_LINES = 15
INSTRUCTION = re.compile(r"(\d+)(?:-(\d+))? ([=+>-])(?: (.*))?")


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script, how it is made small (``setup``) and how it is ported."""

    name: str
    repository: str
    commit: str
    licence: str
    path: str
    """Of the file that is started."""
    edits: Mapping[str, Mapping[str, str]]
    """By file: ``sha256``, ``setup`` and ``port``."""
    beside: tuple[str, ...] = ()
    """Other repositories of the list whose files it imports."""
    arguments: str = ""
    prepare: str = ""
    """Function of ``stand_ins/prepared.py`` that writes its data into the folder in which it runs."""
    evaluation: tuple[str, ...] = ()
    """Functions that evaluate."""
    numbers: str = ""
    """Regular expression of what it prints at an evaluation."""
    files: tuple[str, ...] = ()
    """Files that it saves."""
    needs: tuple[str, ...] = ()
    """Packages beside torch."""
    environment: dict[str, str] = field(default_factory=dict)
    imports: str = "plain_torch"
    """Imports of the process that forks ranks. Default: torch without its compiler, which takes long."""
    filled: bool = False
    """True if it trains on parameters of ``to_empty`` that it never sets."""
    refused: str = ""
    """Regular expression of the message, where the runtime refuses it."""

    @property
    def folder(self) -> Path:
        return Path(self.repository.replace("/", "+")) / self.commit

    def write(self, folder: Path) -> None:
        """
        Port the files in a folder that has the repository.

        Raises:
            ValueError: another source, whose line numbers would not match.
        """
        for name, edit in self.edits.items():
            source = (folder / name).read_text()
            found = hashlib.sha256(source.encode()).hexdigest()
            if found != edit["sha256"]:
                raise ValueError(f"{name} has SHA-256 {found}; allowed: {edit['sha256']}, of commit {self.commit}")
            (folder / name).write_text(edited(source, edit.get("setup", ""), edit.get("port", "")))

    @property
    def changed_lines(self) -> int:
        edits = (one for edit in self.edits.values() for one in read(edit.get("port", "")))
        return sum(one.kind in "=+" for one in edits)


@dataclass(frozen=True)
class Edit:
    first: int
    last: int
    kind: str
    text: str


def scripts() -> dict[str, Script]:
    """Every script of the list by its name."""
    entries: dict[str, Any] = yaml.safe_load(LIST.read_text())
    found = {}
    for name, entry in entries["scripts"].items():
        source = entries["repositories"][entry["repository"]]
        lists = {key: tuple(entry[key]) for key in ("evaluation", "files", "needs", "beside") if key in entry}
        found[name] = Script(**{"name": name, **source, **entry, **lists})
    return found


def read(instructions: str) -> list[Edit]:
    """Return the edits. Raises ValueError for a line that is no instruction."""
    edits = []
    for line in instructions.splitlines():
        parts = INSTRUCTION.fullmatch(line)
        if parts is None:
            raise ValueError(f"got {line!r}; allowed: N[-M] followed by =, +, - or >")
        first, last, kind, text = parts.groups()
        edits.append(Edit(int(first), int(last or first), kind, text or ""))
    return edits


def edited(source: str, *instructions: str) -> str:
    """Return the source with all instructions; the later one of a line counts, a deletion takes what is behind it."""
    lines: list[str | None] = [None, *source.splitlines()]
    behind: dict[int, list[str]] = {}
    for edit in (each for text in instructions for each in read(text)):
        place = range(edit.first, edit.last + 1)
        if edit.kind == "+":
            behind.setdefault(edit.first, []).append(edit.text)
        elif edit.kind == ">":
            for number in place:
                line = lines[number]
                lines[number] = f"    {line}" if line else line
        else:
            for number in place:
                lines[number] = None
                if edit.kind == "-":
                    behind.pop(number, None)
            if edit.kind == "=":
                lines[edit.first] = edit.text
    out = []
    for number, line in enumerate(lines):
        out += [line] if line is not None else []
        out += behind.get(number, [])
    return "\n".join(out) + "\n"
