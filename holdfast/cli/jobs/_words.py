"""
The words after a job file: options for sbatch, and arguments for the job file itself.

sbatch wants its options before the file and takes the first word without a dash for the file, so a word that might be
either is refused here and never handed on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import typer
from typer.core import TyperCommand

from holdfast.cli._errors import CommandError

_KEY = "holdfast.arguments"
_ALONE = frozenset("HIkOQsvVW")
"""sbatch's options of one letter that take no value (sbatch(1), 22.05)."""
_REFUSED = frozenset({"--wrap", "--parsable", "-h", "--help", "--usage", "-V", "--version", "-W", "--wait"})
"""What would have sbatch run something else than the file, print something else than a number, or not return."""
_FORM = "allowed: --name=value, --name, -X value; what the job file is to get as arguments goes after --"


@dataclass(frozen=True, kw_only=True)
class Words:
    """What goes to sbatch before the job file, and after it."""

    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @staticmethod
    def parse(words: Sequence[str], *, arguments: Sequence[str] | None) -> "Words":
        """
        Tell options from arguments.

        Args:
            words: Those before ``--``. Where the first has no dash, all of them are arguments.
            arguments: Those after ``--``; None where there is no ``--``.

        Raises:
            CommandError: a word could be either, or an option of sbatch makes no sense here.
        """
        if words and not words[0].startswith("-"):
            return Words(arguments=(*words, *(arguments or ())))
        takes_value = False
        for word in words:
            name = word.partition("=")[0]
            if name in _REFUSED:
                raise CommandError(f"got sbatch's option {name}; it has no meaning for holdfast submit")
            if not word.startswith("-") and not takes_value:
                raise CommandError(f"got {word!r} among the options of sbatch; {_FORM}")
            takes_value = bool(re.fullmatch(r"-[A-Za-z]", word)) and word[1] not in _ALONE
        return Words(options=tuple(words), arguments=tuple(arguments or ()))


class CommandWithArguments(TyperCommand):
    """A command that can tell what stood after ``--``, which the library would mix with the words before it."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if "--" in args:
            at = args.index("--")
            ctx.meta[_KEY] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def arguments_after_dashes(context: typer.Context) -> list[str] | None:
    """The words after ``--``; None where there was none."""
    found: list[str] | None = context.meta.get(_KEY)
    return found
