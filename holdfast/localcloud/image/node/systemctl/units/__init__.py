"""Unit files: lookup, parsing, values, conditions and commands. Standard library only, copied to nodes."""

from .command import Command, assignments, commands, environment_file
from .conditions import met
from .files import SEARCH, Root
from .fstab import generate, is_mounted, where_of
from .text import (
    Unit,
    UnitError,
    escape_path,
    parse_into,
    unescape,
    words,
)
from .values import (
    INFINITY,
    limit,
    seconds,
    signal_number,
    span,
    statuses,
)

__all__ = [
    "INFINITY",
    "SEARCH",
    "Command",
    "Root",
    "Unit",
    "UnitError",
    "assignments",
    "commands",
    "environment_file",
    "escape_path",
    "generate",
    "is_mounted",
    "limit",
    "met",
    "parse_into",
    "seconds",
    "signal_number",
    "span",
    "statuses",
    "unescape",
    "where_of",
    "words",
]
