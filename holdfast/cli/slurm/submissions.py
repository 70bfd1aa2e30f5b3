"""
Output files of jobs that Slurm's controller has forgotten. Pure.

Slurm 22.05 keeps the folder and the words of the submission; the rest is in the job file. Rules: sbatch(1),
"filename pattern".
"""

import contextlib
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.slurm.records import JobRecord

_FLAGS = frozenset({
    "--contiguous", "--exclusive", "--get-user-env", "--hold", "--ignore-pbs", "--nice", "--no-kill", "--no-requeue",
    "--overcommit", "--oversubscribe", "--parsable", "--propagate", "--quiet", "--reboot", "--requeue", "--spread-job",
    "--test-only", "--use-min-nodes", "--verbose", "--wait",
})  # fmt: skip
_FLAG_LETTERS = frozenset("HIkOQsvVWK")
_SRUN_FLAGS = frozenset({
    "--bcast", "--compress", "--contiguous", "--disable-status", "--exact", "--exclusive", "--hold", "--immediate",
    "--kill-on-bad-exit", "--label", "--multi-prog", "--nice", "--no-allocate", "--no-kill", "--overcommit",
    "--overlap", "--oversubscribe", "--preserve-env", "--propagate", "--pty", "--quiet", "--quit-on-interrupt",
    "--reboot", "--resv-ports", "--send-libs", "--spread-job", "--test-only", "--unbuffered", "--use-min-nodes",
    "--verbose", "--whole", "--x11",
    # Pyxis
    "--container-entrypoint", "--container-mount-home", "--container-readonly", "--container-remap-root",
    "--container-writable", "--no-container-entrypoint", "--no-container-mount-home", "--no-container-remap-root",
})  # fmt: skip
_SRUN_FLAG_LETTERS = frozenset("EHIKOQVXZklsuv")
_PATTERN = re.compile(r"%(\d*)([%AJjNntsaxubh])")
_LONGEST_NAME = 16


@dataclass(frozen=True, kw_only=True)
class Submission:
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
    words = line.split()
    program = words[0].rpartition("/")[2] if words else ""
    options, rest = _options(words[1:], is_srun=program == "srun")
    scripts = tuple(" ".join(rest[:count]) for count in range(1, min(len(rest), 20) + 1))
    return Submission(
        program=program, output=options["output"], error=options["error"], folder=options["chdir"], scripts=scripts
    )


def options_of_script(lines: Sequence[str]) -> dict[str, str]:
    """``output``, ``error`` and ``chdir`` of the ``#SBATCH`` lines; empty if absent."""
    words: list[str] = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a quote that is never closed
            words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
    return _options(words)[0]


def output_files(record: JobRecord, *, submission: Submission, script: Sequence[str]) -> list[str]:
    """Absolute paths of the output, and of the error output if it has its own file."""
    options = options_of_script(script)
    array = "_" in record.job_id
    output = submission.output or options["output"] or ("slurm-%A_%a.out" if array else "slurm-%j.out")
    error = submission.error or options["error"]
    # Where the job began: accounting's working folder is that of --chdir.
    paths = [_expanded(pattern, record) for pattern in (output, error) if pattern]
    return list(dict.fromkeys(posixpath.join(record.work_dir, path) for path in paths))


def submit_folder(record: JobRecord, *, submission: Submission) -> str:
    """Folder in which sbatch was called, as far as the working folder shows."""
    below = f"/{posixpath.normpath(submission.folder)}" if submission.folder else ""
    return record.work_dir.removesuffix(below) or "/"


@dataclass(frozen=True, kw_only=True)
class StepFiles:
    folder: str
    """Absolute; without anything that differs from task to task."""
    name: re.Pattern[str]
    """Of the paths below the folder."""
    depth: int


def step_files(line: str, *, record: JobRecord, step: str) -> list[StepFiles]:
    submission = parse_submission(line)
    if submission.program != "srun":
        return []
    folder = posixpath.join(record.work_dir, submission.folder)
    patterns = dict.fromkeys(one for one in (submission.output, submission.error) if one and one not in ("none", "all"))
    return [_files_of_step(posixpath.join(folder, one), record=record, step=step) for one in patterns]


def _files_of_step(pattern: str, *, record: JobRecord, step: str) -> StepFiles:
    number, _, task = record.job_id.partition("_")
    values = {
        "%": "%", "j": record.number, "J": f"{record.number}.{step}", "A": number.partition("+")[0], "a": task,
        "s": step, "u": record.user,
    }  # fmt: skip
    parts = pattern.split("/")
    fixed = 0
    while fixed < len(parts) - 1 and not set("tnNxbh") & {found[2] for found in _PATTERN.finditer(parts[fixed])}:
        fixed += 1
    folder = "/".join(_PATTERN.sub(lambda found: _value(found, values), part) for part in parts[:fixed]) or "/"
    names = "/".join(parts[fixed:])
    regex, last = "", 0
    for found in _PATTERN.finditer(names):
        regex += re.escape(names[last : found.start()])
        # What differs from task to task, or is not known of a step, such as the name of its program.
        regex += re.escape(_value(found, values)) if found[2] in values else "[^/]*"
        last = found.end()
    return StepFiles(
        folder=folder, name=re.compile(regex + re.escape(names[last:]), re.DOTALL), depth=len(parts) - fixed
    )


def _options(words: Sequence[str], *, is_srun: bool = False) -> tuple[dict[str, str], list[str]]:
    options = {"output": "", "error": "", "chdir": ""}
    short = {"o": "output", "e": "error", "D": "chdir"}
    flags, letters = (_SRUN_FLAGS, _SRUN_FLAG_LETTERS) if is_srun else (_FLAGS, _FLAG_LETTERS)
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-") or word == "-":
            return options, list(words[place:])
        name, sign, value = word.partition("=")
        if word.startswith("--"):
            takes = not sign and name not in flags
            key = name[2:]
        else:
            key, value = short.get(word[1], ""), word[2:]
            takes = not value and word[1] not in letters
        if takes and place + 1 < len(words):
            place += 1
            value = words[place]
        if key in options:
            options[key] = value
        place += 1
    return options, []


def _expanded(pattern: str, record: JobRecord) -> str:
    number, _, task = record.job_id.partition("_")
    values = {
        "%": "%", "j": record.number, "J": record.number, "A": number, "a": task or "4294967294",
        "N": first_host(record.nodes),
        "n": "0", "t": "0", "s": "batch", "x": record.name, "u": record.user, "b": "0", "h": "0",
    }  # fmt: skip

    return _PATTERN.sub(lambda found: _value(found, values), pattern)


def _value(found: "re.Match[str]", values: Mapping[str, str]) -> str:
    value = values.get(found[2], "")
    width = min(int(found[1] or 0), _LONGEST_NAME)
    return value.zfill(width) if value.isdigit() else value


def first_host(nodes: str) -> str:
    head, bracket, rest = nodes.partition("[")
    if not bracket or "," in head:
        return head.partition(",")[0]
    return head + re.split(r"[-,\]]", rest, maxsplit=1)[0]
