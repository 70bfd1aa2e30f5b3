"""
Runs steps: each in a child process, in parallel where needs allow, killed at its deadline.

A child and not a thread: a thread stuck in a system call on a dead mount cannot be ended, and a process group includes
the programs of the step. Check, apply, verify, in this order; a satisfied step costs its check only. When a step fails,
its dependants are not started, and the rest still runs.
"""

import contextlib
import gc
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast_lifecycle.model import Context, Step, StepError

SATISFIED, DONE, FAILED, NOT_STARTED = "satisfied", "done", "failed", "not started"


class Result(NamedTuple):
    step: str
    outcome: str
    duration_s: float = 0.0
    remark: str = ""
    expected: str = ""
    seen: str = ""
    action: str = ""

    @property
    def succeeded(self) -> bool:
        return self.outcome in (SATISFIED, DONE)


class _Running:
    """A step in its child process, which reports through the pipe."""

    def __init__(self, step: Step, pid: int, pipe: int) -> None:
        self.step = step
        self.pid = pid
        self.pipe = pipe
        self.began = time.monotonic()
        self.report = b""

    @property
    def deadline(self) -> float:
        return self.began + self.step.timeout_s


class Runner:
    """Runs the steps of a plan and calls ``report`` with each result."""

    def __init__(self, *, context: Context, report: Callable[[Result], None]) -> None:
        self._context = context
        self._report = report

    def run(self, steps: Sequence[Step]) -> list[Result]:
        """Return all results, in the order of the steps. Needs outside the given steps count as met."""
        gc.freeze()  # or the collector of each child would copy every page that it looks at
        waiting = list(steps)
        running: list[_Running] = []
        results: dict[str, Result] = {}
        names = {step.name for step in steps}
        try:
            while waiting or running:
                for step in [step for step in waiting if _is_ready(step, names, results)]:
                    waiting.remove(step)
                    blocker = next((need for need in step.needs if need in results and not results[need].succeeded), "")
                    if blocker:
                        self._finish(results, _not_started(step, blocker))
                    else:
                        running.append(self._start(step))
                for ended in _wait(running) if running else []:
                    running.remove(ended)
                    self._finish(results, _collect(ended, script=self._context.script))
        finally:
            for left in running:
                _end(left)
        return [results[step.name] for step in steps]

    def _finish(self, results: dict[str, Result], result: Result) -> None:
        results[result.step] = result
        self._report(result)

    def _start(self, step: Step) -> _Running:
        with contextlib.suppress(Exception):  # the child tells of it
            step.load()  # here, too: what the files of steps import in common is imported once
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.close(reading)
            try:
                content = json.dumps(_perform(step, self._context)).encode()
                os.write(writing, content)
            finally:
                os._exit(0)
        os.close(writing)
        # As the child does: whichever comes first, the group exists before anyone kills it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        return _Running(step, pid, reading)


def _is_ready(step: Step, names: set[str], results: dict[str, Result]) -> bool:
    return all(need in results or need not in names for need in step.needs)


def _not_started(step: Step, blocker: str) -> Result:
    return Result(step=step.name, outcome=NOT_STARTED, seen=f"it needs '{blocker}'", action=f"fix '{blocker}' first")


def _perform(step: Step, context: Context) -> dict[str, str]:
    try:
        work = step.load()
        if work.check(context):
            return {"outcome": SATISFIED, "remark": work.verify(context)}
        work.apply(context)
        return {"outcome": DONE, "remark": work.verify(context)}
    except StepError as error:
        return {"outcome": FAILED, "expected": error.expected, "seen": error.seen, "action": error.action}
    except Exception as error:  # noqa: BLE001  the entry point of a process: whatever it was must reach the log
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {
            "outcome": FAILED,
            "expected": "the step runs without an error",
            "seen": f"{type(error).__name__}: {error} (at {where.filename}:{where.lineno})",
            "action": f"read the error; run it again with {context.script} --only {step.name}",
        }


def _wait(running: Sequence[_Running]) -> list[_Running]:
    left = min(item.deadline for item in running) - time.monotonic()
    readable, _, _ = select.select([item.pipe for item in running], [], [], max(0.0, left))
    ended = []
    for item in running:
        if item.pipe in readable:
            chunk = os.read(item.pipe, 65536)
            item.report += chunk
            if not chunk:
                ended.append(item)
                continue
        if time.monotonic() >= item.deadline:
            ended.append(item)
    return ended


def _collect(ended: _Running, *, script: str) -> Result:
    duration_s = time.monotonic() - ended.began
    _end(ended)
    try:
        return Result(step=ended.step.name, duration_s=duration_s, **json.loads(ended.report))
    except ValueError:
        overdue = duration_s >= ended.step.timeout_s
        return Result(
            step=ended.step.name,
            outcome=FAILED,
            duration_s=duration_s,
            expected=f"the step ends within {ended.step.timeout_s:g} s",
            seen=f"it was still running after {duration_s:.1f} s and was killed"
            if overdue
            else "its process was killed",
            action=f"run {script} --only {ended.step.name} on the node to see where it hangs",
        )


def _end(ended: _Running) -> None:
    os.close(ended.pipe)
    try:
        os.killpg(ended.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        os.kill(ended.pid, signal.SIGKILL)
    os.waitpid(ended.pid, 0)
