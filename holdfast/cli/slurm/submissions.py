"""
Where a job that Slurm's controller has forgotten wrote its output.

Slurm 22.05 does not keep the place, but the folder and the words of the submission; the rest is in the job file, and
the rules are sbatch(1)'s, "filename pattern". Pure.
"""

import contextlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.slurm.records import JobRecord

_FLAGS = frozenset({
    "--contiguous", "--exclusive", "--get-user-env", "--hold", "--ignore-pbs", "--nice", "--no-kill", "--no-requeue",
    "--overcommit", "--oversubscribe", "--parsable", "--propagate", "--quiet", "--reboot", "--requeue", "--spread-job",
    "--test-only", "--use-min-nodes", "--verbose", "--wait",
})  # fmt: skip
_FLAG_LETTERS = frozenset("HIkOQsvVWK")
_PATTERN = re.compile(r"%(\d*)([%AJjNntsaxubh])")
_LONGEST_NAME = 16


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What the words of a submission say."""

    program: str
    """sbatch, srun or salloc."""
    output: str
    """Of ``--output``; empty where it was not given."""
    error: str
    """Of ``--error``; empty where both go to one file."""
    folder: str
    """Of ``--chdir``; empty where it was not given."""
    scripts: tuple[str, ...]
    """Paths that may be the job file, likeliest first: the words have lost their quotes."""


def parse_submission(line: str) -> Submission:
    """Read the words of a submission."""
    words = line.split()
    said, rest = _options(words[1:])
    scripts = tuple(" ".join(rest[:count]) for count in range(1, min(len(rest), 20) + 1))
    program = words[0].rpartition("/")[2] if words else ""
    return Submission(
        program=program, output=said["output"], error=said["error"], folder=said["chdir"], scripts=scripts
    )


def options_of_script(lines: Sequence[str]) -> dict[str, str]:
    """``output``, ``error`` and ``chdir`` of the ``#SBATCH`` lines of a job file; empty where they do not say."""
    words: list[str] = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a quote that is never closed
            words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
    return _options(words)[0]


def output_files(record: JobRecord, *, submission: Submission, script: Sequence[str]) -> list[str]:
    """The absolute paths of the job's output and, where it has a file of its own, of its error output."""
    said = options_of_script(script)
    array = "_" in record.job_id
    output = submission.output or said["output"] or ("slurm-%A_%a.out" if array else "slurm-%j.out")
    error = submission.error or said["error"]
    folder = submission.folder or said["chdir"] or record.work_dir
    paths = [_expanded(pattern, record) for pattern in (output, error) if pattern]
    return list(
        dict.fromkeys(path if path.startswith("/") else f"{folder}/{path}".replace("//", "/") for path in paths)
    )


def _options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """What is said of files and the folder, and the words from the first that is neither an option nor its value."""
    said = {"output": "", "error": "", "chdir": ""}
    short = {"o": "output", "e": "error", "D": "chdir"}
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-") or word == "-":
            return said, list(words[place:])
        name, sign, value = word.partition("=")
        if word.startswith("--"):
            takes = not sign and name not in _FLAGS
            key = name[2:]
        else:
            key, value = short.get(word[1], ""), word[2:]
            takes = not value and word[1] not in _FLAG_LETTERS
        if takes and place + 1 < len(words):
            place += 1
            value = words[place]
        if key in said:
            said[key] = value
        place += 1
    return said, []


def _expanded(pattern: str, record: JobRecord) -> str:
    number, _, task = record.job_id.partition("_")
    values = {
        "%": "%", "j": number, "J": number, "A": number, "a": task or "4294967294", "N": _first_host(record.nodes),
        "n": "0", "t": "0", "s": "batch", "x": record.name, "u": record.user, "b": "0", "h": "0",
    }  # fmt: skip

    def value(found: "re.Match[str]") -> str:
        said = values[found[2]]
        width = min(int(found[1] or 0), _LONGEST_NAME)
        return said.zfill(width) if said.isdigit() else said

    return _PATTERN.sub(value, pattern)


def _first_host(nodes: str) -> str:
    """The first host of a list as Slurm writes it: ``ip-10-1-0-[11-13,15],other``."""
    head, bracket, rest = nodes.partition("[")
    if not bracket or "," in head:
        return head.partition(",")[0]
    return head + re.split(r"[-,\]]", rest, maxsplit=1)[0]


def first_host(nodes: str) -> str:
    """The node on which a batch job's file runs."""
    return _first_host(nodes)
