"""journalctl for one unit: its standard output and error, without times, fields or boots."""

from __future__ import annotations

import os
import sys

from .units import Root

_VALUES = (
    "-u",
    "--unit",
    "-n",
    "--lines",
    "-o",
    "--output",
    "-S",
    "--since",
    "-U",
    "--until",
    "-p",
    "--priority",
    "-b",
)
_FLAGS = ("--no-pager", "-x", "-e", "-q", "--quiet", "-a", "--all", "--utc", "--no-hostname", "-r", "--reverse", "-l")


def main(argv: list[str]) -> int:
    root = Root(os.environ.get("HOLDFAST_SYSTEMD_ROOT", ""))
    units, lines, reverse = [], 0, False
    rest = _split(argv)
    while rest:
        option = rest.pop(0)
        name, separator, value = option.partition("=")
        if name in _VALUES:
            if not separator and name != "-b":
                value = rest.pop(0) if rest else ""
            if name in ("-u", "--unit"):
                units.append(root.full_name(value))
            elif name in ("-n", "--lines"):
                lines = int(value) if value.isdigit() else 0
        elif name in ("-r", "--reverse"):
            reverse = True
        elif name not in _FLAGS:
            sys.stderr.write(f"journalctl: stand-in does not support {option!r}; it supports -u UNIT [-n N] and -r\n")
            return 1
    if not units:
        sys.stderr.write("journalctl: stand-in has the output of units only; name one with -u\n")
        return 1
    found = [line for unit in units for line in tail(root, unit, lines)]
    print("\n".join(reversed(found) if reverse else found) if found else "-- No entries --")
    return 0


def _split(argv: list[str]) -> list[str]:
    found = []
    for word in argv:
        if word.startswith("-") and not word.startswith("--") and len(word) > 2:
            for number, letter in enumerate(word[1:], start=1):
                found.append(f"-{letter}")
                if f"-{letter}" in _VALUES and word[number + 1 :]:
                    found.append(word[number + 1 :])
                    break
        else:
            found.append(word)
    return found


def tail(root: Root, unit: str, lines: int) -> list[str]:
    try:
        with open(f"{root.logs}/{unit}.log", "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - 4_000_000))
            found = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return found[-lines:] if lines else found
