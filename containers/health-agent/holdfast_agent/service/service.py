"""
Main loop: detectors signal, the engine judges; news is saved, then logged, then acted on.

One thread, which never waits for anything but its selector.
"""

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Optional

from holdfast_agent.controller import ControllerWatch
from holdfast_agent.coverage import Coverage
from holdfast_agent.detectors import Detector, Instant, Seen
from holdfast_agent.launchers import LauncherSocket
from holdfast_agent.remedies import Decider
from holdfast_agent.service.coverage_events import changed, reports
from holdfast_agent.service.interfaces import Companion, Measuring, Remedies
from holdfast_agent.service.notify import notify, watchdog_s
from holdfast_agent.service.outbox import Outbox
from holdfast_agent.service.recording import Recording
from holdfast_agent.service.state import StateFile
from holdfast_agent.service.verdict_events import verdict_event, verdict_status
from holdfast_agent.signals import Happening, Metric, Numbers, Signal
from holdfast_agent.verdicts import Engine, Verdict
from holdfast_common import kinds, plain, visible

TURN_S = 1.0
"""Longest time between two turns."""
SAVED_EVERY_S = 30.0
"""Save interval if only the position in the kernel log changed."""
RETRIED_EVERY_S = 5.0


def clocks() -> Instant:
    return Instant(boot_s=time.clock_gettime(time.CLOCK_BOOTTIME), time_ns=time.time_ns())


class Service:
    """Main loop over its parts; ``described`` has facts of the node for ``status`` and ``agent_started``."""

    def __init__(
        self,
        *,
        detectors: Sequence[Detector],
        engine: Engine,
        outbox: Outbox,
        state: StateFile,
        remedies: Remedies,
        launchers: "Optional[LauncherSocket]" = None,
        watch: "Optional[ControllerWatch]" = None,
        companions: "Sequence[Companion]" = (),
        decider: Optional[Decider] = None,
        recording: Optional[Recording] = None,
        coverage: Optional[Coverage] = None,
        described: "Optional[dict[str, Any]]" = None,
        clock: "Callable[[], Instant]" = clocks,
    ) -> None:
        self.detectors = tuple(detectors)
        self.engine = engine
        self._outbox = outbox
        self._state = state
        self._remedies = remedies
        self._launchers = launchers
        self._watch = watch
        self._companions = (*companions, *([decider] if decider is not None else ()))
        self._decider = decider
        self._recording = recording
        self._coverage = coverage or Coverage()
        self._described = described or {}
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._waited: dict[str, tuple[int, ...]] = {}
        self._due_s: dict[str, float] = {}
        self._looked_s: dict[str, float] = {}
        self._failed: dict[str, str] = {}
        self._hindered = ""
        self._ending = self._started = False
        self._began = clock()
        self._second_s = 0.0
        self._saved_s = self._began.boot_s
        self._retry_s = 0.0
        self._alive_s = 0.0
        self._longest_turn_s = 0.0
        self._watchdog_s = watchdog_s()
        self._measured: Numbers = {}
        self._measuring: tuple[Measuring, ...] = ()

    def run(self, *, listeners: "Sequence[tuple[Any, Callable[[], None]]]" = ()) -> None:
        """Run until SIGTERM or SIGINT; ``listeners`` are more descriptors, each with its callback."""
        waking, woken = socket.socketpair()
        for end in (waking, woken):
            end.settimeout(0.0)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(waking, selectors.EVENT_READ, lambda: waking.recv(64))
        for door, call in listeners:
            self._selector.register(door, selectors.EVENT_READ, call)
        if self._launchers is not None:
            self._selector.register(self._launchers.fileno(), selectors.EVENT_READ, self._launchers.poll)
        self._begin()
        try:
            while not self._ending:
                self.turn()
        finally:
            signal.set_wakeup_fd(-1)
            self._close()
            waking.close()
            woken.close()

    def turn(self) -> None:
        at = self._clock()
        wait_s = min((due_s - at.boot_s for due_s in self._due_s.values()), default=TURN_S)
        ready = {key.data for key, _ in self._selector.select(min(max(wait_s, 0.0), TURN_S))}
        at = self._clock()
        for call in ready:
            if callable(call):
                call()
        seen: list[Seen] = []
        for detector in self.detectors:
            if detector.name in ready or at.boot_s >= self._due_s.get(detector.name, 0.0):
                seen += self._look(detector, at)
        self._judge(at, seen)
        if not self._started and at.boot_s - self._began.boot_s >= 1.0:
            self._start_companions()
        if at.boot_s - self._second_s >= 1.0:
            self._second_s = at.boot_s
            self._each_second(at)
        self._longest_turn_s = max(self._longest_turn_s, self._clock().boot_s - at.boot_s)

    @property
    def measured(self) -> Numbers:
        """``numbers`` of a second ago; for the threads given to ``measure``."""
        return self._measured

    def measure(self, companions: "Sequence[Measuring]") -> None:
        """Register threads that need ``measured``, before ``run``; without any, nothing is measured."""
        self._companions += tuple(companions)
        self._measuring = tuple(companions)

    def status(self) -> "dict[str, Any]":
        at = self._clock()
        return {
            **self._described,
            "pid": os.getpid(),
            "since_s": round(at.boot_s - self._began.boot_s, 1),
            "longest_turn_s": round(self._longest_turn_s, 3),
            "detectors": [self._described_detector(at, one) for one in self.detectors],
            "lost": [{"detector": key[0], "part": key[1], "why": why} for key, why in self._coverage.lost().items()],
            "incidents": [verdict_status(verdict) for verdict in self.engine.standing()],
            "remedy": {"phase": self._remedies.phase, "problem": self._remedies.problem},
            "jobs": [job.job for job in self._launchers.jobs()] if self._launchers is not None else [],
            "launchers": [_launcher(job) for job in self._launchers.jobs()] if self._launchers is not None else [],
            "leaving": dict(self._remedies.leaving),
            "events": {
                "written": self._outbox.written,
                "waiting": self._outbox.pending,
                "lost": self._outbox.lost,
                "problem": self._outbox.problem,
            },
            "state": {"unsaved": self._state.unsaved, "problem": self._state.problem},
            "numbers": [[name, dict(labels), value] for (name, labels), value in self.numbers().items()],
            "beside": [{"name": one.name, "problem": one.problem} for one in self._companions],
        }

    def numbers(self) -> Numbers:
        found: dict[Metric, float] = {key: value for one in self.detectors for key, value in one.numbers.items()}
        for one in self.detectors:
            found["holdfast_detector_hung", (("detector", one.name),)] = float(one.hung)
        for detector, part in self._coverage.lost():
            found["holdfast_detector_lost", (("detector", detector), ("part", part))] = 1.0
        for companion in self._companions:
            for name, value in companion.numbers().items():  # of two that ship, the sum
                found[f"holdfast_agent_{name}", ()] = found.get((f"holdfast_agent_{name}", ()), 0.0) + value
        found["holdfast_agent_events_written_total", ()] = float(self._outbox.written)
        found["holdfast_agent_events_lost_total", ()] = float(self._outbox.lost)
        standing = self.engine.standing()
        found["holdfast_agent_incidents", ()] = float(len(standing))
        for verdict in standing:
            labels = (("incident", verdict.incident), ("fault", verdict.fault), ("device", verdict.device))
            found["holdfast_agent_incident", (*labels, ("remedy", verdict.remedy.value))] = 1.0
        return found

    def _begin(self) -> None:
        at = self._clock()
        names = ",".join(one.name for one in self.detectors)
        mode = str(self._described.get("mode", "observe"))
        detail: dict[str, Any] = {"mode": mode, "detectors": names}
        if self._described.get("slurm"):
            detail["slurm"] = str(self._described["slurm"])
        self._keep(at, [Happening(kind=kinds.AGENT_STARTED, detail=detail)])
        self._act(at, self.engine.standing())  # an earlier agent may have been killed before it could
        notify("READY=1")

    def _start_companions(self) -> None:
        """After the detectors have forked their children: a fork copies locks of other threads."""
        self._started = True
        for companion in self._companions:
            companion.start()

    def _look(self, detector: Detector, at: Instant) -> "tuple[Seen, ...]":
        """Run a detector; a failure is reported and does not affect others."""
        try:
            seen = detector.look(at)
            self._failed.pop(detector.name, None)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the others go on
            text = f"{type(problem).__name__}: {problem}"
            if self._failed.get(detector.name) != text:
                print(f"detector {detector.name} failed: {visible(text)}", file=sys.stderr, flush=True)
            self._failed[detector.name] = text
            seen = ()
        self._looked_s[detector.name] = at.boot_s
        next_s = detector.interval_s if detector.name in self._failed else detector.due_in_s(at)
        self._due_s[detector.name] = at.boot_s + next_s
        self._wait_for(detector)
        return seen

    def _wait_for(self, detector: Detector) -> None:
        expected, before = detector.descriptors(), self._waited.get(detector.name, ())
        if expected == before and all(number in self._selector.get_map() for number in expected):
            return
        for number in before:
            with suppress(KeyError, ValueError, OSError):
                self._selector.unregister(number)
        for number in expected:
            with suppress(KeyError, ValueError, OSError):  # what cannot be waited for is looked at in time
                self._selector.register(number, selectors.EVENT_READ, detector.name)
        self._waited[detector.name] = expected

    def _judge(self, at: Instant, seen: "Sequence[Seen]") -> None:
        verdicts: list[Verdict] = []
        happenings: list[Happening] = []
        for one in seen:
            if isinstance(one, Signal):
                if self._recording is not None:
                    self._recording.keep(one)
                verdicts += self.engine.see(one)
            else:
                happenings.append(one)
        news = [verdict for verdict in verdicts if verdict.news]
        happenings += map(verdict_event, news)
        if happenings:
            self._keep(at, happenings)
        if verdicts:
            self._act(at, verdicts)

    def _each_second(self, at: Instant) -> None:
        verdicts = self.engine.advance(boot_s=at.boot_s, time_ns=at.time_ns)
        happenings = [verdict_event(verdict) for verdict in verdicts if verdict.news]
        if self._launchers is not None:
            self._launchers.poll()
        if self._watch is not None:
            happenings += self._watch.poll(boot_s=at.boot_s)
        if self._decider is not None:
            happenings += self._decider.happenings()
        states = reports(self.detectors, failed=self._failed, measuring=self._measuring)
        happenings += map(changed, self._coverage.assess(states, boot_s=at.boot_s))
        if happenings:
            self._keep(at, happenings)
        if self._decider is not None:
            self._decider.saved()
        self._act(at, verdicts)
        if self._measuring:
            self._measured = self.numbers()
        if self._outbox.pending and at.boot_s >= self._retry_s:
            self._retry_s = at.boot_s + RETRIED_EVERY_S
            self._outbox.flush()
        if at.boot_s - self._saved_s >= SAVED_EVERY_S:
            self._save(at)
        if self._watchdog_s and at.boot_s - self._alive_s >= self._watchdog_s:
            self._alive_s = at.boot_s
            notify("WATCHDOG=1")

    def _keep(self, at: Instant, happenings: "Sequence[Happening]") -> None:
        """Save the state, then write the log."""
        self._outbox.add(happenings)
        self._save(at)
        if not self._outbox.problem or at.boot_s >= self._retry_s:
            self._retry_s = at.boot_s + RETRIED_EVERY_S
            self._outbox.flush()

    def _act(self, at: Instant, verdicts: "Sequence[Verdict]") -> None:
        jobs = self._launchers.jobs() if self._launchers is not None else ()
        answers = self._launchers.answers() if self._launchers is not None else ()
        done = self._remedies.consider(tuple(verdicts), jobs=jobs, boot_s=at.boot_s, answers=answers)
        before, self._hindered = self._hindered, self._remedies.problem
        if self._hindered not in ("", before):
            print(f"remedy failed: {plain(self._hindered)}; retrying", file=sys.stderr, flush=True)
        if done:
            self._keep(at, done)

    def _save(self, at: Instant) -> None:
        self._saved_s = at.boot_s
        before = self._state.problem
        saved = self._state.save(
            {
                "engine": self.engine.snapshot(),
                "detectors": {one.name: one.remember() for one in self.detectors},
                "outbox": self._outbox.remember(),
                "watch": self._watch.snapshot() if self._watch is not None else {},
                "remedies": self._remedies.snapshot(),
                "coverage": self._coverage.remember(),
            }
        )
        if not saved and not before:
            print(f"cannot save the state: {self._state.problem}; continuing", file=sys.stderr, flush=True)

    def _described_detector(self, at: Instant, one: Detector) -> "dict[str, Any]":
        looked_s = self._looked_s.get(one.name)
        return {
            "name": one.name,
            "support": one.support.value,
            "reason": self._failed.get(one.name) or one.reason,
            "failed": one.name in self._failed,
            "hung": one.hung,
            "interval_s": one.interval_s,
            "deadline_s": one.deadline_s,
            "looked_s_ago": None if looked_s is None else round(at.boot_s - looked_s, 1),
        }

    def _end(self, *_: Any) -> None:
        self._ending = True

    def _close(self) -> None:
        notify("STOPPING=1")
        self._save(self._clock())
        self._outbox.flush()
        self._remedies.close()
        if self._watch is not None:
            self._watch.close()
        for companion in self._companions:
            companion.stop()
        for detector in self.detectors:
            detector.close()
        if self._launchers is not None:
            self._launchers.close()
        self._selector.close()


def _launcher(job: Any) -> "dict[str, Any]":
    ranks = sum(rank.rank >= 0 for rank in job.ranks)
    return {"job": job.job, "task": job.task, "ranks": ranks, "spares": job.spares}
