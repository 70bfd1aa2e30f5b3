"""
From a killed rank of a fully sharded job to the next step that all ranks have done, beside torchrun with DCP.

    python benchmarks/sharded.py [--trials 10] [--peer-trials 2] [--every 5] [--compile]

World 4 on one machine, gloo, FSDP2, 45.6 million parameters with Adam: 137 MB of state per rank, of which nobody has a
twin. Ours is killed as a step begins, each time another rank, with its neighbours in collectives, and goes back to
snapshots; torchrun starts all processes again from a checkpoint that it writes every 20 steps. Then the phases of our
recoveries, and the first step after them beside usual ones. The script says that it keeps nothing of its rank
(``elastic="throughput"``), so that its one spare is warm for each of the four. Exit status 1 when a limit is not held.
``--compile``: with each block under torch.compile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from recovery import events_of, killed, phases_of, phases_table

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
PYTHONPATH = os.pathsep.join(str(ROOT / part) for part in ("containers/training", "containers/common", "benchmarks"))
WORLD, FIRST, SPACING, WARM = 4, 12, 12, 4
PRELOADED = "torch,torch._dynamo,torch.distributed.fsdp,holdfast_runtime.inprocess"
RECOVERY_LIMIT, FIRST_STEP_LIMIT = 1 / 5, 1.2


@dataclass(frozen=True)
class Row:
    ended_s: float
    rank: int
    step: int
    generation: int
    began_s: float


@dataclass(frozen=True, kw_only=True)
class Ours:
    seconds: tuple[float, ...]
    """From the kill to a full step."""
    redone: tuple[int, ...]
    """Committed steps that were done again."""
    redo_s: tuple[float, ...]
    """From all being together to a full step."""
    first_steps: tuple[float, ...]
    """How long the first step after a recovery took, over a usual one."""
    phases: Mapping[str, Sequence[float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--peer-trials", type=int, default=2)
    parser.add_argument("--every", type=int, default=5, help="updates between two snapshots (default: 5)")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.compile:
        os.environ["BENCHMARK_COMPILE"] = "1"
    found = ours(options.trials, every=options.every)
    peer = theirs(options.peer_trials) if options.peer_trials else []
    console = Console(width=120)
    console.print(
        phases_table(
            {**found.phases, "kill to a full step": found.seconds},
            title=f"{len(found.seconds)} kills of one of {WORLD} ranks of FSDP2, 137 MB per rank",
        )
    )
    own_s = statistics.median(found.seconds)
    ratio = own_s / statistics.median(peer) if peer else 0.0
    beside = f", {ratio:.3f} of torchrun's with DCP (limit {RECOVERY_LIMIT:.2f})" if peer else ""
    console.print(f"kill to the next full step: {own_s:.3f} s{beside}")
    first = statistics.median(found.first_steps)
    console.print(f"first step after a recovery: {first:.2f} of a usual one (limit {FIRST_STEP_LIMIT})")
    console.print(f"committed steps done again: {max(found.redone)} at most, a snapshot every {options.every}")
    return 0 if ratio <= RECOVERY_LIMIT and first <= FIRST_STEP_LIMIT else 1


def ours(trials: int, *, every: int) -> Ours:
    faults = [
        {"kind": "SIGKILL", "phase": "forward", "rank": n % WORLD, "step": FIRST + SPACING * n} for n in range(trials)
    ]
    with tempfile.TemporaryDirectory(prefix="holdfast-sharded-") as name:
        folder = Path(name)
        launch(folder, FIRST + SPACING * trials, every, faults)
        kills = [killed(folder, number) for number in range(trials)]
        return measured(rows_of(folder), kills, events_of(folder))


def rows_of(folder: Path) -> list[Row]:
    return [
        Row(float(ended), int(rank), int(step), int(generation), float(began))
        for ended, rank, step, generation, began, _ in map(str.split, (folder / "steps").read_text().splitlines())
    ]


def usual_step_s(rows: Sequence[Row]) -> float:
    return statistics.median(row.ended_s - row.began_s for row in rows if row.step > WARM)


def launch(folder: Path, total: int, every: int, faults: Sequence[Mapping[str, object]]) -> None:
    fired = folder / "fired"
    fired.mkdir(parents=True)
    variables = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"}
    variables |= {"HOLDFAST_FAULTS": json.dumps(list(faults)), "HOLDFAST_FAULTS_FIRED": str(fired)}
    variables |= {"HOLDFAST_EVENTS": str(folder / "events.jsonl")}
    command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", str(WORLD), "--spares", "1"]
    command += ["--rdzv-id", str(folder), "--socket", str(folder / "socket"), "--preload", PRELOADED]
    command += ["--max-restarts", str(len(faults) + 1)]
    command += [str(HERE / "sharded_program.py"), str(folder), str(total), str(every)]
    with (folder / "output").open("w") as log, Console(stderr=True).status(f"{len(faults)} kills"):
        code = subprocess.run(command, env=variables, stdout=log, stderr=log, check=False).returncode
    if code:
        raise SystemExit(f"the job failed:\n{(folder / 'output').read_text()[-3000:]}")


def measured(rows: Sequence[Row], kills: Sequence[float], events: Sequence[Mapping[str, object]]) -> Ours:
    usual = usual_step_s(rows)
    seconds, redone, redo_s, first_steps = [], [], [], []
    for kill in kills:
        before = [row for row in rows if row.ended_s < kill]
        generation = min(row.generation for row in rows if row.began_s > kill)
        after = [row for row in rows if row.generation == generation]
        step = min(row.step for row in after)
        first = [row for row in after if row.step == step]
        ended = max(row.ended_s for row in first)
        seconds.append(ended - kill)
        redone.append(max(row.step for row in before) + 1 - step)
        redo_s.append(ended - min(row.began_s for row in first))
        first_steps.append(statistics.median(row.ended_s - row.began_s for row in first) / usual)
    return Ours(
        seconds=tuple(seconds),
        redone=tuple(redone),
        redo_s=tuple(redo_s),
        first_steps=tuple(first_steps),
        phases={**phases_of(events, kills), "redo": redo_s},
    )


def theirs(trials: int) -> list[float]:
    command = [sys.executable, str(HERE / "peers" / "run_dcp.py"), "--trials", str(trials)]
    variables = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    with Console(stderr=True).status("torchrun with DCP"):
        done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    if done.returncode:
        raise SystemExit(f"torchrun failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if not all(trial["kept"] for trial in found):
        raise SystemExit(f"torchrun did not keep its state: {found}")
    return [trial["full_strength_s"] for trial in found]


if __name__ == "__main__":
    sys.exit(main())
