"""
An urgent job takes three of six nodes from a job that trains on five, and gives them back: an elastic job beside one of
checkpoint and restart, on a real Slurm of this machine alone.

    python benchmarks/contention.py              # as root, some minutes
    python benchmarks/contention.py --urgent 40  # seconds that the urgent job works

The elastic job is told to leave by the health agent's lender, as ``slurm.lending`` has it, and Slurm starts its tasks
again. The other one is told by this program, when the urgent job is submitted and when that ends; it then writes a
checkpoint, and is submitted with as many tasks as there is room for. So nobody has to decide, and no step is made
twice. Lost is the time without a step around both changes. Exit status 1 where the urgent job begins after more than
15 s beside the elastic one, where that has five nodes again more than 30 s after its end, or where checkpoint and
restart loses less than 5 times as much.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = ("containers/training", "containers/health-agent", "containers/common", "tests/support")
sys.path[:0] = [str(ROOT / name) for name in PATHS]

from bare_slurm import GIVES_WAY, BareSlurm, bare_slurm  # noqa: E402

from elastic import PRELOAD, PROGRAM, lines, made, ports, until  # noqa: E402
from holdfast_agent.lending import Lender  # noqa: E402
from holdfast_agent.slurm import Program  # noqa: E402

NODES, MOST, URGENT = 6, 5, 3
FEWEST = NODES - URGENT
BEGINS_S, GROWN_S, TIMES = 15.0, 30.0, 5.0
LOGICAL = 15
"""Parts of the batch, which five ranks and three have evenly."""
STEPS = 100_000
DEADLINE_S = 600.0
TRAINED = 3
"""Steps at a size before anything is done to it."""
HEAD = """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --nice=1000
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --comment={comment}
export PYTHONPATH={path} LOGICAL={logical} OMP_NUM_THREADS=1
"""
ELASTIC = """export HOLDFAST_TOKEN=benchmark HOLDFAST_AGENT_SOCKET={folder}/none
{python} -m holdfast_runtime.launcher --nnodes 2:{most} --peers {peers} --node-rank "$SLURM_ARRAY_TASK_ID" \\
    --rdzv-id contention --socket "{folder}/$SLURM_ARRAY_TASK_ID.sock" --preload {preload} \\
    {program} {folder} elastic {steps} &
{gives_way}"""
RESTART = """export RANK=$SLURM_ARRAY_TASK_ID WORLD_SIZE=$SLURM_ARRAY_TASK_COUNT MASTER_ADDR=127.0.0.1
exec {python} {program} {folder} restart {steps}
"""


@dataclass(frozen=True, kw_only=True)
class Act:
    begins_s: float
    grown_s: float
    lost_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urgent", type=float, default=25.0, help="seconds that the urgent job works. Default: 25")
    values = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slurm-") as text, bare_slurm(Path(text) / "s", nodes=NODES) as slurm:
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        home = Path(text)
        ours = elastic(slurm, folder=made(home / "elastic"), urgent_s=values.urgent)
        theirs = restart(slurm, folder=made(home / "restart"), urgent_s=values.urgent)
    print(f"{'':38}{'elastic':>10}{'checkpoint and restart':>26}")
    for what, name in (
        ("the urgent job begins after", "begins_s"),
        (f"{MOST} nodes again after its end", "grown_s"),
        ("without a step, in both changes", "lost_s"),
    ):
        print(f"{what:38}{getattr(ours, name):8.1f} s{getattr(theirs, name):24.1f} s")
    times = theirs.lost_s / ours.lost_s
    print(f"{times:.1f} times as much lost by checkpoint and restart; load {os.getloadavg()[0]:.1f}")
    return int(ours.begins_s > BEGINS_S or ours.grown_s > GROWN_S or times < TIMES)


def elastic(slurm: BareSlurm, *, folder: Path, urgent_s: float) -> Act:
    lender = Lender(program=Program(), notice_s=60, say=lambda text: print(text, flush=True))
    peers = ",".join(f"127.0.0.1:{port}" for port in ports(MOST))
    job = submit(slurm, folder, HEAD + ELASTIC, tasks=MOST, comment=f"elastic=2:{MOST}", peers=peers)
    lender.start()
    try:
        trained(folder, MOST)
        asked = urgent(slurm, folder, urgent_s)
        trained(folder, FEWEST)
        until((folder / "ended").exists, "the end of the urgent job", folder, within_s=DEADLINE_S)
        trained(folder, MOST, since=stamp(folder / "ended"))
    finally:
        lender.stop()
        slurm.run(["scancel", job])
    gone(slurm, job)
    return came_to(folder, asked)


def restart(slurm: BareSlurm, *, folder: Path, urgent_s: float) -> Act:
    job = begin(slurm, folder, MOST)
    trained(folder, MOST)
    asked = urgent(slurm, folder, urgent_s)
    job = begin(slurm, folder, FEWEST, after=job)
    trained(folder, FEWEST)
    until((folder / "ended").exists, "the end of the urgent job", folder, within_s=DEADLINE_S)
    job = begin(slurm, folder, MOST, after=job)
    trained(folder, MOST, since=stamp(folder / "ended"))
    slurm.run(["scancel", job])
    gone(slurm, job)
    return came_to(folder, asked)


def begin(slurm: BareSlurm, folder: Path, tasks: int, *, after: str = "") -> str:
    if after:
        slurm.run(["scancel", "--signal=TERM", "--batch", after])
        gone(slurm, after)
    (port,) = ports(1)
    return submit(slurm, folder, f"{HEAD}export MASTER_PORT={port}\n{RESTART}", tasks=tasks, comment="none")


def submit(slurm: BareSlurm, folder: Path, script: str, *, tasks: int, **more: str) -> str:
    path = os.pathsep.join(str(ROOT / name) for name in PATHS)
    values = {"folder": folder, "python": sys.executable, "program": PROGRAM, "path": path, "preload": PRELOAD}
    values |= {"steps": STEPS, "most": MOST, "logical": LOGICAL, "gives_way": GIVES_WAY}
    text = script.format(**values, **more)
    (folder / "job.sbatch").write_text(text)
    options = [f"--array=0-{tasks - 1}", f"--output={folder}/log", "--parsable"]
    return slurm.run(["sbatch", *options, str(folder / "job.sbatch")]).strip()


def urgent(slurm: BareSlurm, folder: Path, seconds: float) -> float:
    asked = time.time()
    wrap = (
        f"date +%s.%N > {folder}/began; sleep {seconds:g}; date +%s.%N > {folder}/ends; mv {folder}/ends {folder}/ended"
    )
    slurm.run(["sbatch", f"--nodes={URGENT}", "--exclusive", "--output=/dev/null", "--wrap", wrap])
    return asked


def came_to(folder: Path, asked: float) -> Act:
    by_step: dict[int, list[dict[str, float]]] = {}
    for line in lines(folder):
        by_step.setdefault(line["step"], []).append(line)
    steps = [found for _, found in sorted(by_step.items()) if len(found) == found[0]["size"]]
    lost = [
        min(line["began"] for line in after) - max(line["ended"] for line in before)
        for before, after in itertools.pairwise(steps)
        if before[0]["size"] != after[0]["size"]
    ]
    ended = stamp(folder / "ended")
    grown = min(line["began"] for found in steps for line in found if line["size"] == MOST and line["began"] > ended)
    return Act(begins_s=stamp(folder / "began") - asked, grown_s=grown - ended, lost_s=sum(lost))


def trained(folder: Path, size: int, *, since: float = 0.0) -> None:
    def enough() -> bool:
        made_at = {line["step"] for line in lines(folder) if line["size"] == size and line["began"] > since}
        return len(made_at) >= TRAINED

    until(enough, f"{TRAINED} steps on {size} nodes", folder, within_s=DEADLINE_S)


def gone(slurm: BareSlurm, job: str) -> None:
    until(
        lambda: job not in slurm.run(["squeue", "-h", "-o", "%F"]).split(),
        f"the end of job {job}",
        slurm.folder,
        within_s=DEADLINE_S,
    )


def stamp(path: Path) -> float:
    return float(path.read_text())


if __name__ == "__main__":
    sys.exit(main())
