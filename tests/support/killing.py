"""
Runs a small training under ``holdfast-run`` with faults in it, and compares every committed step with a calm run.

Launchers are real processes on loopback, one per node. A launcher that a fault kills is started again, as a scheduler
would. Nothing outlives ``run_job``: launchers die with it, and everything else with its launcher.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ports import free_ports

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "integration" / "runtime_program.py"
QUICK = (
    "beat=0.1,heartbeat=1,leave=1.2,ready=1.6,minority=3,view=20,connect=22,transfer=24,progress=2.5,start=300,stop=5"
)
PATIENT = (
    "beat=0.3,heartbeat=10,leave=11,ready=12,minority=20,view=60,connect=70,transfer=80,progress=60,start=300,stop=5"
)
"""For a busy machine: what is killed is noticed by its closed connection, whatever they are."""
AGAIN = (-signal.SIGKILL, 75)
"""A scheduler starts these again."""
PYTHONPATH = os.pathsep.join(str(ROOT / part) for part in ("containers/training", "containers/common", "tests/support"))


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is started."""

    steps: int
    nodes: int = 1
    ranks: int = 4
    """Per node."""
    spares: int = 1
    """Warm processes per node."""
    spare_nodes: int = 0
    faults: tuple[Mapping[str, Any], ...] = ()
    pause_s: float = 0.0
    arguments: tuple[str, ...] = ()
    deadlines: str = ""
    timeout_s: float = 300.0
    """On a machine that is full of other work it takes a minute to import torch."""
    until_step: int = 0
    """It is killed once any rank has committed this step. Default: 0, it runs to its end."""
    until: Callable[[], bool] = lambda: False
    """It is killed once this says so. Default: it runs to its end."""
    restart_launchers: bool = True
    """Those that were killed, and those that gave their ranks away."""
    program: Path = PROGRAM
    torch: str = "plain_torch"
    """Preloaded. Default: torch without what takes it long to import and what the programs of tests do not use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    leaves: tuple[str, ...] = ()
    """Leaf switch of each node, in the words of Slurm's topology plugin. Default: there is no plugin."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happened."""

    codes: tuple[int, ...]
    """Exit code of each node's last launcher."""
    steps: dict[int, dict[int, tuple[str, int]]]
    """By step and rank: loss and digest of the last time that the step was committed there."""
    differing: tuple[str, ...]
    """Steps that were committed more than once with other bits."""
    fired: dict[int, int]
    """By number of the fault: how often it happened."""
    text: str
    """What the launchers said."""
    folder: Path

    @property
    def finished(self) -> bool:
        return all(code == 0 for code in self.codes)


def agent_socket(folder: Path, node: int) -> Path:
    """Where the launcher of a node looks for the health agent."""
    return folder / f"{node}.agent"


def run_job(folder: Path, job: Job) -> Outcome:
    """Run a job to its end; a job that takes too long is killed, and its exit codes are negative."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fired").mkdir(exist_ok=True)
    ports = free_ports(job.nodes)
    peers = ",".join(f"127.0.0.1:{port}" for port in ports)
    with (folder / "launchers.log").open("ab") as log:

        def start(node: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", str(job.ranks)]
            command += ["--spares", str(job.spares), "--deadlines", job.deadlines or QUICK, "--rdzv-id", str(folder)]
            command += ["--preload", f"{job.torch},holdfast_runtime.inprocess"]
            command += ["--socket", str(folder / f"{node}.sock"), *job.arguments]
            if job.nodes > 1:
                command += ["--peers", peers, "--node-rank", str(node), "--spare-nodes", str(job.spare_nodes)]
            command += [str(job.program), str(folder), str(job.steps), str(job.pause_s)]
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=_environment(folder, node, job), preexec_fn=_die_with_parent
            )

        launchers = [start(node) for node in range(job.nodes)]
        try:
            codes = _wait(launchers, start, job, folder)
        finally:
            for launcher in launchers:
                launcher.kill()
                launcher.wait()
    return _outcome(folder, codes)


def differences(outcome: Outcome, calm: Outcome, *, unseen: bool = False) -> list[str]:
    """
    Where a run was not bit for bit the calm one; empty when it was.

    Args:
        unseen: Whether a single step may have no line of the program: survivors finish an update while they join
            again, and the next step's digest, which follows from that one's, tells its bits. Default: no
    """
    found = list(outcome.differing)
    for step, ranks in calm.steps.items():
        for rank, wanted in ranks.items():
            got = outcome.steps.get(step, {}).get(rank)
            if got is not None and got != wanted:
                found.append(f"step {step}, rank {rank}: {got} instead of {wanted}")
        if not outcome.steps.get(step) and not (unseen and outcome.steps.get(step + 1)):
            found.append(f"step {step} was never committed")
    return found


def _environment(folder: Path, node: int, job: Job) -> dict[str, str]:
    own = {"PYTHONPATH": PYTHONPATH, "HOLDFAST_STATUS": str(folder / f"{node}.sock"), "PYTHONUNBUFFERED": "1"}
    own["HOLDFAST_AGENT_SOCKET"] = str(agent_socket(folder, node))
    own["HOLDFAST_EVENTS"] = str(folder / "events.jsonl")
    own["HOLDFAST_INSTANCE_ID"] = f"i-{node}"
    own["HOLDFAST_TOKEN"] = "of a test"  # the default would be a file in the home directory
    if job.leaves:
        own["SLURM_TOPOLOGY_ADDR"] = f"nn-root.{job.leaves[node]}.node-{node}"
        own["SLURM_TOPOLOGY_ADDR_PATTERN"] = "switch.switch.node"
    if job.faults:
        own |= {"HOLDFAST_FAULTS": json.dumps(list(job.faults)), "HOLDFAST_FAULTS_FIRED": str(folder / "fired")}
    return {**os.environ, "HOLDFAST_LOG_LEVEL": "debug", **own, **job.environment}


def _wait(launchers: list[subprocess.Popen[bytes]], start: Any, job: Job, folder: Path) -> tuple[int, ...]:
    end = time.monotonic() + job.timeout_s
    while time.monotonic() < end:
        codes = [launcher.poll() for launcher in launchers]
        if all(code is not None and code not in AGAIN for code in codes) or (
            not job.restart_launchers and all(code is not None for code in codes)
        ):
            return tuple(code or 0 for code in codes)
        for node, code in enumerate(codes):
            if code in AGAIN and job.restart_launchers:
                launchers[node] = start(node)
        if job.until():
            break
        if job.until_step and max(_outcome(folder, ()).steps, default=0) >= job.until_step:
            break
        time.sleep(0.05)
    return tuple(launcher.poll() or -99 for launcher in launchers)


def _outcome(folder: Path, codes: Sequence[int]) -> Outcome:
    steps: dict[int, dict[int, tuple[str, int]]] = {}
    differing = []
    for path in sorted(folder.glob("rank*.jsonl")):
        rank = int(path.stem.removeprefix("rank"))
        for line in path.read_text().splitlines():
            try:
                value = json.loads(line)
            except ValueError:  # a process died in the middle of it
                continue
            bits = (value["loss"], value["digest"])
            before = steps.setdefault(value["step"], {}).get(rank)
            if before is not None and before != bits:
                differing.append(f"step {value['step']}, rank {rank}: committed as {before} and as {bits}")
            steps[value["step"]][rank] = bits
    fired: dict[int, int] = {}
    for path in (folder / "fired").iterdir():
        number = int(path.name.split(".")[0])
        fired[number] = fired.get(number, 0) + 1
    text = (folder / "launchers.log").read_text(errors="replace")
    return Outcome(codes=tuple(codes), steps=steps, differing=tuple(differing), fired=fired, text=text, folder=folder)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
