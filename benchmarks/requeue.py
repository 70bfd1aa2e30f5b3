"""
A node is lost: Slurm's requeue, its expedited requeue, and ``holdfast-run``, on a real Slurm of this machine alone.

    python benchmarks/requeue.py    # as root, some minutes

Two ranks train on two of three nodes, of which one is killed: its slurmd, its steps and its processes. The node is then
set down, as the control plane of HyperPod or of the local cluster does; the time until it notices is in no row. A
requeued job goes on from a checkpoint of every 20 steps on the third node, where ``holdfast-run`` has a warm spare.
Without expedited requeue, which Slurm has since 25.11, there is no row of it. Exit status 1 where ``holdfast-run`` did
a step again, or training stood still longer with it than with a requeue.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = ("containers/training", "containers/common", "tests/support", "benchmarks")
sys.path[:0] = [str(ROOT / name) for name in PATHS]

from bare_slurm import BareSlurm, bare_slurm  # noqa: E402

from elastic import made, ports, until  # noqa: E402
from holdfast.localcloud.spank import slurm_version  # noqa: E402

NODES, RANKS, KILL_AT, STEPS = 3, 2, 27, 50
EXPEDITED_SINCE = (25, 11)
DEADLINE_S = 300.0
HEAD = """#!/bin/bash
#SBATCH --exclusive
#SBATCH --open-mode=append
date +%s.%N >> {folder}/started
export PYTHONPATH={path} TRIAL={folder} OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo TORCH_CPP_LOG_LEVEL=ERROR
"""
REQUEUED = """ports=({ports})
export MASTER_ADDR=127.0.0.1 MASTER_PORT=${{ports[${{SLURM_RESTART_COUNT:-0}}]}} WORLD_SIZE={ranks}
srun --kill-on-bad-exit=1 bash -c 'RANK=$SLURM_PROCID exec {python} {root}/benchmarks/requeue_program.py'
"""
IN_PLACE = """export HOLDFAST_TOKEN=benchmark HOLDFAST_AGENT_SOCKET={folder}/none
srun --no-kill bash -c '{python} -m holdfast_runtime.launcher --nnodes {nodes} --spare-nodes 1 --nproc-per-node 1 \\
    --peers {peers} --node-rank "$SLURM_PROCID" --rdzv-id requeue --socket {folder}/$SLURM_PROCID.sock \\
    {root}/benchmarks/recovery_program.py {folder} {steps} && touch {folder}/finished'
echo "srun ended with $?"
[ -e {folder}/finished ]
"""


@dataclass(frozen=True, kw_only=True)
class Done:
    time_s: float
    step: int
    generation: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    started_s: float | None
    """From the kill until Slurm had started the job again; None where it did not."""
    stood_s: float
    """Between the last step before the loss and the first one after it."""
    redone: int
    ending: str


def main() -> int:
    version = slurm_version()
    ways: dict[str, list[str]] = {"requeue": ["--requeue"]}
    parameters = ""
    if version >= EXPEDITED_SINCE:
        ways["expedited requeue"] = ["--requeue=expedite"]
        parameters = "SlurmctldParameters=enable_expedited_requeue"
    found: dict[str, Loss] = {}
    with tempfile.TemporaryDirectory(prefix="slurm-") as text:
        home = Path(text)
        with bare_slurm(home / "s", nodes=NODES, settings=parameters) as slurm:
            for number, (way, options) in enumerate(ways.items()):
                script = HEAD + REQUEUED
                found[way] = lose(slurm, made(home / str(number)), script, [*options, f"--nodes={RANKS}"])
            script = HEAD + IN_PLACE
            found["holdfast-run"] = lose(slurm, made(home / "run"), script, ["--no-kill", f"--nodes={NODES}"])
    print(f"Slurm {'.'.join(map(str, version))}, load {os.getloadavg()[0]:.1f}")
    print(f"{'':20}{'started again':>15}{'stood still':>14}{'steps redone':>15}   ending of the job")
    for way, loss in found.items():
        started = "never ended" if loss.started_s is None else f"{loss.started_s:.1f} s"
        print(f"{way:20}{started:>15}{loss.stood_s:12.1f} s{loss.redone:15}   {loss.ending}")
    ours = found.pop("holdfast-run")
    return int(ours.redone > 0 or any(ours.stood_s > loss.stood_s for loss in found.values()))


def lose(slurm: BareSlurm, folder: Path, script: str, options: list[str]) -> Loss:
    values = {"folder": folder, "python": sys.executable, "root": ROOT, "nodes": NODES, "ranks": RANKS, "steps": STEPS}
    values |= {"path": os.pathsep.join(str(ROOT / name) for name in PATHS), "ports": " ".join(map(str, ports(8)))}
    peers = ",".join(f"127.0.0.1:{port}" for port in ports(NODES))
    (folder / "job.sbatch").write_text(script.format(**values, peers=peers))
    output = f"--output={folder}/log"
    job = slurm.run(["sbatch", "--parsable", output, *options, str(folder / "job.sbatch")]).strip()
    until(lambda: any(one.step >= KILL_AT for one in steps(folder)), f"step {KILL_AT}", folder, within_s=DEADLINE_S)
    node = f"n{RANKS - 1}"
    killed_s = kill(slurm, node)
    slurm.run(["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost"])
    until(
        lambda: job not in slurm.run(["squeue", "-h", "-o", "%i"]).split(),
        f"the end of job {job}",
        folder,
        within_s=DEADLINE_S,
    )
    state = slurm.run(["scontrol", "--oneliner", "show", "job", job])
    ending = " ".join(word for word in state.split() if word.startswith(("JobState=", "ExitCode=")))
    slurm.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])  # not of a node that has registered already
    slurm.run(["slurmd", "-N", node])
    until(
        lambda: slurm.run(["sinfo", "-h", "-t", "idle", "-o", "%D"]).strip() == str(NODES),
        "idle nodes",
        folder,
        within_s=DEADLINE_S,
    )
    text = [line for line in (folder / "log").read_text().splitlines() if line.startswith("srun ended")]
    return came_to(folder, killed_s, "; ".join([ending, *text]))


def kill(slurm: BareSlurm, node: str) -> float:
    daemon = int((slurm.folder / f"{node}.pid").read_text())
    tasks = [pid for pid in pids() if f"SLURMD_NODENAME={node}" in variables(pid)]
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in tasks}
    stepds = {pid for pid in parents if b"slurmstepd" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    killed_s = time.time()
    for pid in (daemon, *stepds, *tasks):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return killed_s


def pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def variables(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return []


def came_to(folder: Path, killed_s: float, ending: str) -> Loss:
    done = steps(folder)
    before = max(one.generation for one in done if one.time_s <= killed_s)
    last = max(one.step for one in done if one.generation == before)
    after = [one for one in done if one.generation > before]
    if not after:
        raise TimeoutError(f"no step after the loss: {ending}\n{(folder / 'log').read_text()[-2000:]}")
    return Loss(
        started_s=next((at - killed_s for at in starts(folder) if at > killed_s), None),
        stood_s=min(one.time_s for one in after) - max(one.time_s for one in done if one.generation == before),
        redone=max(0, last + 1 - min(one.step for one in after)),
        ending=ending,
    )


def starts(folder: Path) -> list[float]:
    return [float(line) for line in (folder / "started").read_text().splitlines()]


def steps(folder: Path) -> list[Done]:
    path = folder / "steps"
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("["):
            time_s, _, step, generation, _ = json.loads(line)
        else:
            time_s, _, step, generation = line.split()[:4]
        found.append(Done(time_s=float(time_s), step=int(step), generation=int(generation)))
    return found


if __name__ == "__main__":
    sys.exit(main())
