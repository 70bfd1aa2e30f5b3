"""Elastic jobs to be changed and killed: the program of ``elastic_program`` on several nodes, asked for sizes."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killing import PATIENT, ROOT, Job
from sharded_jobs import PRELOADED

from holdfast_runtime.launcher.node import ask

PROGRAM = ROOT / "tests" / "integration" / "elastic_program.py"


@dataclass(frozen=True)
class Line:
    """What one rank wrote of one step."""

    rank: int
    step: int
    loss: str
    digest: int
    size: int
    generation: int
    parts: tuple[int, ...]
    leaves: bool
    """Whether the rank was told, after its update, that all leave after this step."""
    began_s: float
    time_s: float


@dataclass(frozen=True)
class Step:
    """What all ranks wrote of one step in one generation."""

    number: int
    generation: int
    lines: tuple[Line, ...]

    @property
    def size(self) -> int:
        return self.lines[0].size

    @property
    def whole(self) -> bool:
        """Whether every rank came to write its line."""
        return len(self.lines) == self.size

    @property
    def bits(self) -> tuple[str, int]:
        """Loss, and the digest of the whole state."""
        return self.lines[0].loss, sum(line.digest for line in self.lines)


def elastic(
    *,
    sizes: str,
    steps: int,
    nodes: int = 4,
    logical: int | str = 4,
    every: int | str = "never",
    faults: tuple[Mapping[str, Any], ...] = (),
    **more: Any,
) -> Job:
    """A job of so many nodes with a rank each."""
    environment = {"ELASTIC": str(logical), "SNAPSHOT_EVERY": str(every)}
    arguments = ("--max-restarts", "40", *(("--sizes", sizes) if sizes else ()))
    return Job(
        steps=steps,
        nodes=nodes,
        ranks=1,
        spares=0,
        faults=faults,
        torch=PRELOADED,
        environment=environment,
        **{"deadlines": PATIENT, "arguments": arguments, "program": PROGRAM, **more},
    )


def asking(folder: Path, plan: Sequence[tuple[int, int]], *, node: int = 0) -> Callable[[], bool]:
    """For ``Job.until``: asks the launcher of a node for sizes, each once a step was committed."""
    waiting = list(plan)

    def look() -> bool:
        if waiting and max(written(folder), default=-1) >= waiting[0][0]:
            answer = ask(folder / f"{node}.sock", say=f"scale {waiting[0][1]}")
            assert answer == {"refused": ""}, answer
            waiting.pop(0)
        return False

    return look


def written(folder: Path) -> dict[int, list[Step]]:
    """All that ranks wrote, by step, in the order of generations."""
    found: defaultdict[tuple[int, int], list[Line]] = defaultdict(list)
    for path in sorted(folder.glob("rank*.jsonl")):
        for text in path.read_text().splitlines():
            try:
                value = json.loads(text)
            except ValueError:  # the last words of one that was killed
                continue
            line = Line(rank=int(path.stem.removeprefix("rank")), **{**value, "parts": tuple(value["parts"])})
            found[line.step, line.generation].append(line)
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    for (number, generation), lines in sorted(found.items()):
        steps[number].append(Step(number, generation, tuple(lines)))
    return dict(steps)


def wrong(folder: Path, calm: Path, *, steps: int) -> list[str]:
    """
    Where a job's losses, parameters or moments are not those of the calm one, or a step is missing.

    What comes after an update is not part of the step: where all ranks had to leave between vote and line, the next
    step is the first of another generation, and its bits say whether the one before it was made.
    """
    wanted, got, problems = written(calm), written(folder), []
    for number in range(steps):
        before, after = (
            max((step.generation for step in got.get(other, [])), default=0) for other in (number - 1, number + 1)
        )
        if not got.get(number) and not 0 < before < after:
            problems.append(f"step {number} was never committed")
        for step in got.get(number, []):
            if {line.loss for line in step.lines} != {wanted[number][-1].bits[0]}:
                problems.append(f"step {number} in generation {step.generation} has another loss")
            elif step.whole and step.bits != wanted[number][-1].bits:
                problems.append(f"step {number} in generation {step.generation} has another state")
    return problems


def gaps(folder: Path) -> list[tuple[int, int, float]]:
    """Sizes before and after each change, and the time between the last step's end and the next one's beginning."""
    last = [steps[-1] for _, steps in sorted(written(folder).items())]
    return [
        (
            before.size,
            after.size,
            min(line.began_s for line in after.lines) - max(line.time_s for line in before.lines),
        )
        for before, after in itertools.pairwise(last)
        if before.size != after.size
    ]
