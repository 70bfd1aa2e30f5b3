"""``--no-kill`` on the command line of sbatch, salloc or srun, in a job file, and in the environment. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

_VALUELESS = """
batch bell contiguous disable-status exact exclusive get-user-env help hold ignore-pbs kill-on-bad-exit label multi-prog
nice no-allocate no-bell no-kill no-requeue no-shell overcommit overlap oversubscribe parsable preserve-env pty quiet
quit-on-interrupt reboot requeue resv-ports spread-job test-only unbuffered usage use-min-nodes verbose version whole
"""
VALUELESS = frozenset(f"--{name}" for name in _VALUELESS.split())
"""Options of sbatch, salloc and srun that take no value, or only one behind ``=`` (their man pages, 22.05 to 25.05)."""
SHORT_VALUELESS = "EHkKlOQsuvVWXZhI"
"""The same of one letter. ``-W`` of sbatch; srun's takes a number, which then counts as the program."""


def no_kill_of(arguments: Sequence[str]) -> bool | None:
    """
    Return what the options before the program or the job file say; None where they say nothing.

    The last one counts, and ``--no-kill=off`` takes it back (srun(1)).
    """
    found: bool | None = None
    words = iter(arguments)
    for word in words:
        if word == "--" or not word.startswith("-"):
            break
        name, _, value = word.partition("=")
        if name.startswith("--"):
            if len(name) > len("--no-") and "--no-kill".startswith(name):
                found = value != "off"
            elif "=" not in word and name not in VALUELESS:
                next(words, None)
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "k":  # its value is optional, so that it is what follows in the same word
                found = letters != "off"
                break
            if letter not in SHORT_VALUELESS:
                if not letters:
                    next(words, None)
                break
    return found


def no_kill_of_script(script: str) -> bool | None:
    return no_kill_of([word for line in sbatch_lines(script) for word in split(line)])


def sbatch_lines(script: str) -> Iterator[str]:
    for line in script.removeprefix("\ufeff").splitlines():
        text = line.strip()
        if text.startswith("#SBATCH"):
            yield text.removeprefix("#SBATCH").strip()
        elif text and not text.startswith("#"):
            return


def no_kill_of_sruns(script: str) -> bool | None:
    """Return what all ``srun`` of a job file say; None where they differ or there is none."""
    body = script.replace("\\\n", " ")
    answers = {
        bool(no_kill_of(split(found[1])))
        for line in body.splitlines()
        if not line.lstrip().startswith("#")
        for found in re.finditer(r"(?:^|[\s;&|(])(?:\S*/)?srun(\s[^;&|]*)", line)
    }
    return answers.pop() if len(answers) == 1 else None


def no_kill_of_environment(name: str, environment: Mapping[str, str]) -> bool | None:
    """Return what a variable says, such as SBATCH_NO_KILL; None without it."""
    value = environment.get(name)
    return None if value is None else value != "off"


def split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()
