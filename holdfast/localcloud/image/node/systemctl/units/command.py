"""Exec lines: prefixes, words, variables. Pure; systemd.service(5), "Command lines"."""

from __future__ import annotations

import re

from .text import Unit, UnitError, words

_PREFIXES = "@-:+!"
_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_WHOLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Command:
    def __init__(self, argv: tuple[str, ...], *, marks: str = "", name: str = "") -> None:
        self.argv = argv
        """Words before substitution; the first is the program's path."""
        self.name = name
        """What the program sees as argv[0] (prefix @); empty: its path."""
        self.ignore_failure = "-" in marks
        self.privileged = "+" in marks or "!" in marks
        self.literal = ":" in marks
        """No variables are substituted."""

    def expand(self, environment: dict[str, str]) -> list[str]:
        """Return argv with variables: ``${X}`` inside a word, ``$X`` split at white space; unset: "", or no word."""
        if self.literal:
            return list(self.argv)
        found = []
        for word in self.argv:
            if whole := _WHOLE.fullmatch(word):
                found += words(environment.get(whole[1], ""))
            else:
                found.append(_VARIABLE.sub(lambda m: environment.get(m[1], "") if m[1] else "$", word))
        return found


def commands(unit: Unit, key: str) -> list[Command]:
    """Return the commands of ExecStart= and the like; `` ; `` separates several in one line."""
    found = []
    for line in unit.all("Service", key):
        part: list[str] = []
        for word in [*words(line), ";"]:
            if word == ";" and part:
                found.append(_command(unit, part))
                part = []
            elif word != ";":
                part.append(word)
    return found


def _command(unit: Unit, argv: list[str]) -> Command:
    path = argv[0].lstrip(_PREFIXES)
    marks = argv[0][: len(argv[0]) - len(path)]
    rest, name = argv[1:], ""
    if "@" in marks:
        if not rest:
            raise UnitError(f"{unit.name}: a command with prefix @ needs a second word, got {argv[0]!r}")
        name, rest = rest[0], rest[1:]
    return Command((path, *rest), marks=marks, name=name)


def assignments(unit: Unit) -> dict[str, str]:
    found = {}
    for word in unit.names("Service", "Environment"):
        name, separator, value = word.partition("=")
        if separator:
            found[name] = value
    return found


def environment_file(text: str) -> dict[str, str]:
    """Parse an EnvironmentFile=: shell-like assignments, comments with # or ;, no substitution."""
    found = {}
    for raw in text.replace("\\\n", "").splitlines():
        line = raw.strip()
        if not line or line[0] in "#;" or "=" not in line:
            continue
        name, _, value = line.partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[name.strip()] = value
    return found
