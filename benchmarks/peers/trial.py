"""
One trial of another runtime: start it, kill a rank with SIGKILL, and measure the pause by its steps.

The programs beside this file define the start and the ranks of their runtime. Every rank appends a line a step to one
file; all share one machine and clock.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

WORLD, VICTIM = 4, 2
START_S, FINISH_S, POLL_S = 180.0, 240.0, 0.02

Processes = list["subprocess.Popen[bytes]"]
Job = Callable[[Mapping[str, str]], AbstractContextManager[Callable[[], bool]]]
"""Starts a runtime whose ranks have these variables; returns functions to poll and to end it."""


class Step(NamedTuple):
    time_s: float
    rank: int
    step: int
    generation: int
    """Number of times that the group was rebuilt."""
    world: int


@dataclass(frozen=True, kw_only=True)
class Trial:
    kept: bool
    """Training went on from a state later than the first."""
    full_strength_s: float | None = None
    """From the kill to the first step that all ranks have done."""
    steps_redone: int = 0
    error: str = ""


# -- in a rank --------------------------------------------------------------------------------------------------------


def folder() -> Path:
    return Path(os.environ["TRIAL"])


def log_step(*, rank: int, step: int, generation: int, world: int) -> None:
    line = json.dumps(Step(time.time(), rank, step, generation, world))
    with (folder() / "steps").open("a") as log:
        log.write(line + "\n")


def log_end(*, rank: int) -> None:
    (folder() / f"ended{rank}").touch()


# -- in the driver ----------------------------------------------------------------------------------------------------


def main(job: Job, *, first_kill: int) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=3)
    trials = parser.parse_args().trials
    print(json.dumps([asdict(run(job, kill_at=first_kill + 3 * number)) for number in range(trials)]))


def run(job: Job, *, kill_at: int) -> Trial:
    with tempfile.TemporaryDirectory(prefix="holdfast-peer-") as name:
        log = Path(name) / "steps"
        variables = {
            **os.environ,
            "TRIAL": name,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "TP_SOCKET_IFNAME": "lo",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
        }
        try:
            with job(variables) as ended:
                _wait(lambda: _all_at(log, kill_at), START_S, "the ranks did not come to the step of the kill")
                pid = int((Path(name) / f"pid{VICTIM}").read_text())
                killed_s = time.time()
                os.kill(pid, signal.SIGKILL)
                _wait(ended, FINISH_S, "the job did not end")
            return judge(read_steps(log), killed_s=killed_s)
        except TimeoutError as error:
            return Trial(kept=False, error=str(error))


def judge(steps: list[Step], *, killed_s: float) -> Trial:
    """Result by the steps. A step in progress at the kill may still finish: it belongs to the generation before."""
    before = max(step.generation for step in steps if step.time_s <= killed_s)
    last = max(step.step for step in steps if step.generation == before)
    after = [step for step in steps if step.generation > before]
    if not after:
        return Trial(kept=False, error="no step was done after the kill")
    first = min(step.step for step in after)
    done: dict[tuple[int, int], dict[int, float]] = {}
    for step in after:
        if step.world >= WORLD:
            done.setdefault((step.generation, step.step), {})[step.rank] = step.time_s
    full = [max(times.values()) for times in done.values() if len(times) >= WORLD]
    return Trial(
        kept=first > 0,
        full_strength_s=min(full) - killed_s if full else None,
        steps_redone=max(0, last - first + 1),
    )


def read_steps(log: Path) -> list[Step]:
    text = log.read_text() if log.exists() else ""
    return [Step(*json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def start(command: list[str], variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with (Path(variables["TRIAL"]) / "output").open("ab") as output:
        return subprocess.Popen(command, env=dict(variables), stdout=output, stderr=output, start_new_session=True)


def is_rank() -> bool:
    return "TRIAL" in os.environ


def write_pid(rank: int) -> None:
    """Before the first step; a process that takes over a rank writes its own."""
    (folder() / f"pid{rank}").write_text(str(os.getpid()))


def end(processes: Processes) -> None:
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def all_ended(variables: Mapping[str, str]) -> bool:
    return len(list(Path(variables["TRIAL"]).glob("ended*"))) >= WORLD


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _all_at(log: Path, step: int) -> bool:
    """In one group of the full size: a runtime that starts with fewer members is not measured while it grows."""
    last = {found.rank: found for found in read_steps(log)}
    groups = {(found.generation, found.world) for found in last.values()}
    victim = last.get(VICTIM)
    return (
        len(last) == WORLD
        and len(groups) == 1
        and groups.pop()[1] == WORLD
        and victim is not None
        and victim.step >= step
        and all(found.step >= step - 1 for found in last.values())
    )


def _wait(condition: Callable[[], bool], limit_s: float, otherwise: str) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"{otherwise} within {limit_s:g} s")
        time.sleep(POLL_S)
