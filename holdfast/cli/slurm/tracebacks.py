"""
First traceback in the output of a job, with its rank and host, and lines that name an error. Pure.

Ranks write into one file at once. Labels separate them: those of ``srun -l`` ("3: "), or those of torchrun and of
the launcher ("[rank3]: ").
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

BEGIN = "Traceback (most recent call last):"
MOST_LINES = 400
SHOWN_LINES = 3
_LABEL = re.compile(r"(?P<label>\s*(?:\[(?:rank|default)(?P<named>\d+)\]:|(?P<task>\d+):) ?)")
_CHAINS = ("During handling of the above", "The above exception was")
_TASK_ON = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): ")
_TORCHRUN_HOST = re.compile(r"host\s*: (\S+)")
_TORCHRUN_RANK = re.compile(r"rank\s*: (\d+) ")
_ERRORS = re.compile(
    r"No space left on device|Disk quota exceeded|CUDA out of memory|CUDA error|NCCL WARN|out of memory"
    r"|pyxis: (?:failed|couldn't)|enroot-\w+: error|slurmstepd: error|srun: error(?!.*: Exited with)"
    r"|Stale file handle|Killed$|Input/output error|manifest unknown|pull access denied|RuntimeError:"
    r"|Connection (?:reset|refused|closed) by|^\s*what\(\): "
)
_MOST_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class Failure:
    error: str
    """Its last line, such as ``ValueError: bad shape``."""
    lines: tuple[str, ...]
    """Its end, without labels."""
    rank: str = ""
    host: str = ""

    @property
    def is_of_torchrun(self) -> bool:
        """True for the traceback that torchrun itself writes after a rank ended."""
        return "ChildFailedError" in self.error

    @property
    def where(self) -> str:
        """Such as "rank 3 on ip-10-1-0-12"; empty if unknown."""
        rank = f"rank {self.rank}" if self.rank else ""
        return " on ".join(filter(None, (rank, self.host)))


def first_failure(lines: Sequence[str], *, host: str = "") -> Failure | None:
    """First traceback in the output of a job, torchrun's own only if it is the only one; None without one."""
    of_torchrun = None
    for place, line in enumerate(lines):
        if line.rstrip().endswith(BEGIN):
            label = line[: line.index(BEGIN)]
            found = _LABEL.fullmatch(label)
            kept = _of_label(lines[place : place + MOST_LINES], label)
            rank = (found["named"] or found["task"]) if found else ""
            failure = Failure(
                error=kept[-1].strip(),
                lines=tuple(kept[-SHOWN_LINES:]),
                rank=rank,
                host=_host_of(lines, rank=rank) or host,
            )
            if not failure.is_of_torchrun:
                return failure
            of_torchrun = of_torchrun or failure
    return of_torchrun


def named_error(lines: Sequence[str]) -> str:
    """First line that names an error, other than that a task has ended; empty without one."""
    return next((line.strip()[:_MOST_CHARACTERS] for line in lines if _ERRORS.search(line)), "")


def _of_label(lines: Sequence[str], label: str) -> list[str]:
    kept: list[str] = []
    ended = chained = False
    for line in lines:
        if not line.startswith(label.rstrip()) or (not label.strip() and _LABEL.match(line)):
            continue
        rest = line[len(label) :].rstrip() if line.startswith(label) else ""
        if not rest:
            continue
        if ended and rest.startswith(_CHAINS):
            chained, ended = True, False
        elif ended:
            break
        kept.append(rest)
        if not rest[:1].isspace() and not rest.startswith((BEGIN, *_CHAINS)):
            ended, chained = True, False
    return kept[:-1] if chained and len(kept) > 1 else kept


def _host_of(lines: Sequence[str], *, rank: str) -> str:
    if not rank:
        return ""
    for line in lines:
        if (found := _TASK_ON.search(line)) and _is_in(int(rank), found[2]):
            return found[1]
    for place, line in enumerate(lines):
        if (found := _TORCHRUN_HOST.search(line)) and any(
            (ranked := _TORCHRUN_RANK.search(after)) and ranked[1] == rank for after in lines[place : place + 3]
        ):
            return found[1]
    return ""


def _is_in(number: int, ranges: str) -> bool:
    """Return True if srun's list ``0,2-5`` has the number."""
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        if first.isdecimal() and int(first) <= number <= int(last or first):
            return True
    return False
