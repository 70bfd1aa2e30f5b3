"""State of a local cloud's process, from /proc and its progress file."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from holdfast.localcloud.kernel_log import KernelLogs
from holdfast.localcloud.processes import detached
from holdfast.localcloud.roster import named
from holdfast.localcloud.supervision import ProcessPasses, passes_path, read_passes

SILENT_AFTER_S = 15.0
"""A process without progress file for this long is hung, whatever its state."""
KERNEL_LOG = "kernel-log"

State = Literal["running", "stopped", "gone"]


@dataclass(frozen=True, kw_only=True)
class ProcessState:
    name: str
    pid: int
    """0 when there is none."""
    state: State
    """``stopped``: by a signal."""
    passed_s_ago: dict[str, float] = field(default_factory=dict)
    """Thread -> seconds since its last pass."""
    problems: tuple[str, ...] = ()


def process_state(name: str, *, home: Path) -> ProcessState:
    process = found(name, home=home)
    passes, now = read_passes(passes_path(home, name)), time.monotonic()
    if process is None:
        if name == "keeper" and not detached.has_record(name=name, home=home):
            return ProcessState(name=name, pid=0, state="gone")  # nobody asked for one
        return described(name, pid=0, state="gone", passes=None, now=now)
    state: State = "stopped" if process.stands_still() else "running"
    own = passes if passes is not None and passes.pid == process.pid else None
    return described(name, pid=process.pid, state=state, passes=own, now=now)


def found(name: str, *, home: Path) -> detached.Process | None:
    if name != KERNEL_LOG:
        return detached.find(name=name, home=home)
    known = KernelLogs(home / "nodes").process()
    if known is None:
        return None
    process = detached.Process(pid=known[0], start_ticks=known[1])
    return process if process.alive() else None


def serves_kernel_logs(home: Path) -> bool:
    return KernelLogs(home / "nodes").process() is not None


def described(name: str, *, pid: int, state: State, passes: ProcessPasses | None, now: float) -> ProcessState:
    problems: list[str] = []
    what = f"the {named(name).what}"
    if state == "gone":
        problems.append(f"{what} is not running")
    elif state == "stopped":
        since = f" for {now - passes.at:.0f} s" if passes is not None else ""
        problems.append(f"{what} is stopped by a signal{since}; continue it with: kill -CONT {pid}")
    elif passes is not None and now - passes.at > SILENT_AFTER_S:
        problems.append(f"{what} (pid {pid}) has reported nothing for {now - passes.at:.0f} s; see its log")
    elif passes is not None:
        problems += [f"{what}: {line}" for one in passes.passes for line in one.problems(now=now)]
    ages = passes.ages(now=now) if passes is not None else {}
    return ProcessState(name=name, pid=pid, state=state, passed_s_ago=ages, problems=tuple(problems))


def control_plane(home: Path) -> dict[str, object]:
    found = process_state("hyperpod", home=home)
    return {"state": found.state, "passed_s_ago": found.passed_s_ago, "problems": list(found.problems)}
