"""
Each process of the system is killed, and stopped, under a running job: it is noticed in time, comes back or is told of,
and the job's losses are those of a calm run, bit for bit.

Launcher, rank, spare and the process that forks are ``test_kill_matrix``'s and ``test_runtime_soak``'s.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1800)]

EXAMPLE = Path(__file__).parents[2] / "examples/bytelm"
STEPS = 50_000
"""More than are ever done: the jobs are cancelled."""
TOLD_WITHIN_S = 5.0
RESTORED_WITHIN_S = 60.0
BACK_WITHIN_S = 20.0
STOPPED_DAEMON_BACK_WITHIN_S = 60.0
SLOW = 4.0
"""How much later things may come on a busy machine."""


def eventually(holds: Callable[[], Any], *, within_s: float) -> Any:
    deadline = time.monotonic() + SLOW * within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come about within {SLOW * within_s:g} s"
        time.sleep(0.25)
    return found


def told(product: Any, words: str, *, without: bool = False, within_s: float = TOLD_WITHIN_S) -> None:
    """Status says so, or does not any more."""
    said: list[str] = []

    def holds() -> bool:
        said.append(problem(product))
        return (words in said[-1]) != without

    try:
        eventually(holds, within_s=within_s)
    except AssertionError:
        raise AssertionError(f"not told: {words!r}, but {said[-1]!r}") from None


def pid_of(product: Any, name: str) -> int:
    return int(json.loads((product.home / "run" / f"{name}.json").read_text())["pid"])


def problem(product: Any) -> str:
    """What status tells; a status that cannot be had tells it too."""
    done = product.run("status", "--json", check=False)
    assert "Traceback" not in done.stderr
    return str(json.loads(done.stdout)["problem"]) if done.returncode == 0 else str(done.stderr)


def events(product: Any, kind: str) -> list[dict[str, Any]]:
    done = product.run("events", "--json", check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [event for event in found if event["kind"] == kind]


def losses(product: Any, job: str) -> dict[int, float]:
    progress = [event for event in events(product, "job_progress") if event["job"] == job]
    return {event["detail"]["step"]: event["detail"]["loss"] for event in progress}


def submit(product: Any) -> str:
    folder = product.work / "bytelm"
    if not folder.exists():
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        job = folder / "bytelm.sbatch"
        job.write_text(job.read_text().replace('"$@"\ncode', f'--steps {STEPS} "$@"\ncode'))
        assert str(STEPS) in job.read_text()
    told = product.run("submit", str(folder / "bytelm.sbatch"), "--prepare", str(EXAMPLE / "prepare.py"), "--json")
    return str(json.loads(told.stdout[told.stdout.index("{") :])["job_id"])


def on(product: Any, host: str, command: str) -> str:
    return str(product.run("ssh", host, "--", command, check=False).stdout).strip()


def advances(product: Any, job: str) -> None:
    """The job does more steps than it has done."""
    before = max(losses(product, job), default=0)
    eventually(lambda: max(losses(product, job), default=0) > before, within_s=60.0)


def kill_own(product: Any, name: str) -> None:
    """A process of the local cloud dies."""
    old = pid_of(product, name)
    os.kill(old, signal.SIGKILL)
    eventually(lambda: pid_of(product, name) != old and "is not running" not in problem(product), within_s=20.0)
    told(product, f"process {name} failed and was restarted", within_s=RESTORED_WITHIN_S)


def stop_own(product: Any, name: str) -> None:
    """A process of the local cloud stands still; nobody but ``up`` lets it go on."""
    pid = pid_of(product, name)
    os.kill(pid, signal.SIGSTOP)
    told(product, "is stopped by a signal")
    product.run("up", "local")
    assert pid_of(product, name) == pid
    told(product, "is stopped by a signal", without=True)


def end_daemon(product: Any, host: str, program: str, *, sign: str, back_within_s: float) -> None:
    """A daemon of Slurm dies or stands still, is told of, and runs again as another process."""
    lost, back = len(events(product, "daemon_lost")), len(events(product, "daemon_restored"))
    old = on(product, host, f"pgrep -x {program}; pkill -{sign} -x {program}")
    assert old
    eventually(lambda: len(events(product, "daemon_lost")) > lost, within_s=TOLD_WITHIN_S)
    assert problem(product) is not None
    eventually(lambda: len(events(product, "daemon_restored")) > back, within_s=back_within_s)
    assert on(product, host, f"pgrep -x {program}") not in ("", old)


def test_each_process_of_the_system_dies_and_stands_still_under_a_job_whose_bits_stay(product: Any) -> None:
    product.run("up", "local")
    hosts = {node["instance_group"]: node["hostname"] for node in reversed(product.status()["nodes"])}
    controller, worker = hosts["controller"], hosts["workers"]
    nodes = {node["instance_id"] for node in product.status()["nodes"]}
    job = submit(product)
    eventually(lambda: losses(product, job), within_s=60.0)

    for name in ("hyperpod", "aws", "keeper"):
        kill_own(product, name)
        advances(product, job)
    for name in ("hyperpod", "aws", "keeper"):
        stop_own(product, name)
        advances(product, job)
    for host, program in (
        (controller, "slurmctld"),
        (controller, "slurmdbd"),
        (controller, "munged"),
        (worker, "munged"),
        (worker, "slurmd"),
    ):
        end_daemon(product, host, program, sign="KILL", back_within_s=BACK_WITHIN_S)
    for host, program in ((controller, "slurmctld"), (controller, "munged")):
        end_daemon(product, host, program, sign="STOP", back_within_s=STOPPED_DAEMON_BACK_WITHIN_S)
    advances(product, job)
    assert {node["instance_id"] for node in product.status()["nodes"]} == nodes, "no node was taken for it"
    assert [event for event in events(product, "job_resumed") if event["job"] == job] == []

    # Slurm gives up a node whose slurmd stands still: it is rebooted, and the job goes on from its checkpoint.
    on(product, worker, "pkill -STOP -x slurmd")
    eventually(lambda: [event for event in events(product, "job_resumed") if event["job"] == job], within_s=120.0)
    advances(product, job)
    disturbed = losses(product, job)
    product.run("ssh", controller, "--", "scancel", job)

    calm_job = submit(product)
    eventually(lambda: max(losses(product, calm_job), default=0) >= max(disturbed), within_s=900.0)
    calm = losses(product, calm_job)
    product.run("ssh", controller, "--", "scancel", calm_job)
    assert {step: calm[step] for step in disturbed} == disturbed
