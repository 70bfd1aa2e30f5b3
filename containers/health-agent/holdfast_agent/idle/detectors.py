"""Detectors: deep check of an idle node, and failures of independent jobs."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast_agent.children import Ended, Program
from holdfast_agent.detectors import Detector, Instant, Seen
from holdfast_agent.idle.agreement import Agreement
from holdfast_agent.idle.need import needed_by
from holdfast_agent.idle.schedule import IdleSchedule, Look, Turn
from holdfast_agent.launchers import JobReport
from holdfast_agent.signals import Happening, conditions
from holdfast_common import kinds

SLACK_S = 180.0
"""Beside the load itself: it runs at the lowest priority, and DCGM takes a time of its own."""
_UNHEALTHY = 1

Jobs = Callable[[], "Sequence[JobReport]"]


class JobAgreementDetector(Detector):
    name = "jobs"
    interval_s = 1.0

    def __init__(self, *, jobs: Jobs) -> None:
        super().__init__()
        self._jobs = jobs
        self._agreement = Agreement()

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        self.supported()
        text = self._agreement.hear(self._jobs(), boot_s=at.boot_s)
        return self.holding(at, (self.signal(at, conditions.JOBS_AGREE, text),) if text else ())


class IdleCheck(Detector):
    """
    Runs the deep check of an idle node.

    Args:
        command: Prints one JSON object.
        why_not: Reason why this node has none; else empty.
        jobs: Last report of each launcher.
        is_sound: No other incident requires a remedy, and none is in progress.
    """

    name = "idle-check"
    interval_s = 1.0

    def __init__(
        self,
        *,
        command: Sequence[str],
        seconds: float,
        repeat_s: float,
        why_not: str,
        jobs: Jobs,
        due: Callable[[], "frozenset[str]"],
        is_sound: Callable[[], bool],
        began_s: float,
        needed: "Callable[[Sequence[JobReport]], str]" = needed_by,
    ) -> None:
        super().__init__()
        self._command, self._seconds, self._why_not = tuple(command), seconds, why_not
        self._jobs, self._due, self._is_sound, self._needed = jobs, due, is_sound, needed
        self._program = Program(deadline_s=seconds + SLACK_S)
        self._time = IdleSchedule(repeat_s=repeat_s, began_s=began_s)
        self._started_s = 0.0
        self._is_left = False
        self._passed = self._failed = 0

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if self._why_not:
            return self.switched_off(self._why_not)
        self.supported()
        now = Look(boot_s=at.boot_s, due=self._due(), is_sound=self._is_sound())
        reported: list[Seen] = []
        ended = self._program.poll(at.boot_s)
        if ended is not None and not self._is_left:
            reported += self._judge(ended, now)
        if self._program.running or self._time.is_due(now):
            now = Look(boot_s=at.boot_s, needed=self._needed(self._jobs()), due=now.due, is_sound=now.is_sound)
        turn = self._time.decide(now, running=self._program.running and not self._is_left)
        if turn is Turn.LEAVE:
            self._is_left = True
            self._program.stop()
        elif turn is Turn.START and not self._program.running:
            self._started_s, self._is_left = at.boot_s, False
            ended = self._program.start(self._command, at.boot_s, os.environ)
            reported += self._judge(ended, now) if ended is not None else ()
        self.hung = int(self._program.stuck)
        self._say(now)
        found = tuple(
            self.signal(at, conditions.BURN_IN_FAILED, f"idle check failed twice: {text}", device="")
            for text in ("; ".join(self._time.found)[:400],)
            if text
        )
        return (*reported, *self.holding(at, found))

    def due_in_s(self, at: Instant) -> float:
        """Soon while it runs: a job that needs the node does not wait."""
        del at
        return 0.2 if self._program.running else self.interval_s

    def descriptors(self) -> "tuple[int, ...]":
        return self._program.descriptors()

    def processes(self) -> "tuple[int, ...]":
        return (self._program.pid,) if self._program.running else ()

    def remember(self) -> "dict[str, Any]":
        return {**super().remember(), "time": self._time.snapshot()}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        if memory.get("time"):
            self._time.restore(memory["time"])

    def close(self) -> None:
        self._program.close()

    def _judge(self, ended: Ended, now: Look) -> "tuple[Seen, ...]":
        """Use only results of load tests: detectors report the rest."""
        report = _object(ended.output)
        problems = report.get("trial_problems")
        if ended.code not in (0, _UNHEALTHY) or not isinstance(problems, list):
            self._time.gave_no_result(now)
            return ()
        self._time.ended(tuple(str(one)[:200] for one in problems[:8]), now)
        if problems:
            self._failed += 1
            return ()
        self._passed += 1
        detail: dict[str, Any] = {"seconds": self._seconds}
        if now.due:
            detail["incident"] = ",".join(sorted(now.due))[:200]
        return (Happening(kind=kinds.NODE_QUALIFIED, duration_s=now.boot_s - self._started_s, detail=detail),)

    def _say(self, now: Look) -> None:
        if self._program.running:
            self.reason = "checking the node" if not self._is_left else "stopped: the node is needed"
        elif self._time.is_due(now):
            self.reason = f"deep check pending: {now.needed or 'waiting for the node to stay idle'}"
        outcomes = {"passed": self._passed, "failed": self._failed, "left": self._time.left}
        self.numbers = {
            ("holdfast_idle_checks_total", (("outcome", name),)): float(count) for name, count in outcomes.items()
        }


def _object(text: str) -> "dict[str, Any]":
    try:
        found = json.loads(text.strip().rpartition("\n")[2] or "null")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
