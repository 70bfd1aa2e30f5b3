"""
Words around a job file: options of sbatch, and arguments of the job file.

As sbatch has it: options before the file, arguments after it. Or options after the file, and arguments after ``--``;
sbatch gets them before the file and takes the first word without a dash for it, so an ambiguous word is refused.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from holdfast.cli.terminal import Command, CommandError

_KEY = "holdfast.arguments"
_WITH_VALUE = frozenset({
    "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters",
    "comment", "constraint", "container", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu",
    "cpus-per-task", "deadline", "delay-boot", "dependency", "distribution", "error", "exclude", "export",
    "export-file", "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "gres", "gres-flags", "hint", "input", "job-name", "kill-on-invalid-dep", "licenses",
    "mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network",
    "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "open-mode", "output", "partition", "power", "prefer", "priority", "profile", "qos",
    "reservation", "signal", "sockets-per-node", "switches", "thread-spec", "threads-per-core", "time", "time-min",
    "tmp", "uid", "wait-all-nodes", "wckey",
})  # fmt: skip
_LETTERS_WITH_VALUE = frozenset("AabBcCdDeFGiJLmMnNopqStwx")
"""sbatch's options whose value may be a word of its own (sbatch(1), 22.05); that of others only follows a ``=``."""
_REFUSED = frozenset({"--wrap", "--parsable", "-h", "--help", "--usage", "-V", "--version", "-W", "--wait"})
"""What would have sbatch run something else than the file, print something else than a number, or not return."""
_FORM = "allowed: options with their values; arguments of the job file after --"


@dataclass(frozen=True, kw_only=True)
class SbatchArguments:
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @staticmethod
    def around(words: Sequence[str], *, arguments: Sequence[str] | None) -> tuple[str, "SbatchArguments"]:
        """
        Find the job file among the words before ``--``, and separate options from arguments.

        Args:
            words: The file with what stands before and after it. After options before it, all that follows it are
                arguments.
            arguments: Those after ``--``; None without ``--``.

        Raises:
            CommandError: as ``parse``, or no word is a job file.
        """
        at = _place_of_file(words)
        if at is None:
            raise CommandError(f"got no job file behind {' '.join(words)}; name the job file after options of sbatch")
        before, after = words[:at], words[at + 1 :]
        if before:
            return words[at], SbatchArguments.parse(before, arguments=(*after, *(arguments or ())))
        return words[at], SbatchArguments.parse(after, arguments=arguments)

    @staticmethod
    def parse(words: Sequence[str], *, arguments: Sequence[str] | None) -> "SbatchArguments":
        """
        Separate options from arguments.

        Args:
            words: Those before ``--``. If the first has no dash, all of them are arguments.
            arguments: Those after ``--``; None without ``--``.

        Raises:
            CommandError: an ambiguous word, or an option of sbatch without meaning here.
        """
        if words and not words[0].startswith("-"):
            return SbatchArguments(arguments=(*words, *(arguments or ())))
        takes_value = False
        for word in words:
            if _is_refused(word):
                raise CommandError(
                    f"got sbatch's option {word}, which holdfast submit does not support; for sbatch itself: "
                    "holdfast ssh NODE --user ubuntu -- sbatch ..."
                )
            if not word.startswith("-") and not takes_value:
                raise CommandError(f"got {word!r} among the options of sbatch; {_FORM}")
            takes_value = not takes_value and _takes_value(word)
        if takes_value:
            raise CommandError(f"got sbatch's option {words[-1]} without its value; {_FORM}")
        return SbatchArguments(options=tuple(words), arguments=tuple(arguments or ()))


def _place_of_file(words: Sequence[str]) -> int | None:
    takes_value = False
    for at, word in enumerate(words):
        if not word.startswith("-") and not takes_value:
            return at
        takes_value = not takes_value and _takes_value(word)
    return None


def _is_refused(word: str) -> bool:
    """Return True also for shortened options, and for one of several letters behind one dash."""
    name = word.partition("=")[0]
    if name.startswith("--"):
        return name[2:] not in _WITH_VALUE and any(one.startswith(name) for one in _REFUSED)
    return word.startswith("-") and any(f"-{letter}" in _REFUSED for letter in _flags(word))


def _takes_value(word: str) -> bool:
    if word.startswith("--"):
        return word[2:] in _WITH_VALUE
    flags = _flags(word)
    return len(word) == len(flags) + 2 and word[-1] in _LETTERS_WITH_VALUE


def _flags(word: str) -> str:
    return "".join(itertools.takewhile(lambda letter: letter not in _LETTERS_WITH_VALUE, word[1:]))


class CommandWithArguments(Command):
    """Command that keeps the words after ``--`` apart, which the library would mix with those before."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if "--" in args:
            at = args.index("--")
            ctx.meta[_KEY] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def arguments_after_dashes(context: typer.Context) -> list[str] | None:
    """Words after ``--``; None without ``--``."""
    found: list[str] | None = context.meta.get(_KEY)
    return found
