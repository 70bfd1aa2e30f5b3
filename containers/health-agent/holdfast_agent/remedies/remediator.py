"""From verdicts to the report of this node, and from its order to hand-overs. Called each second; never waits."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.launchers import JobReport, RestartRequests
from holdfast_agent.remedies.leaving import Departure, Leaving
from holdfast_agent.remedies.need import report_of, strongest
from holdfast_agent.remedies.node_mark import NodeMark
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy, When, kinds, node_socket
from holdfast_common.decisions import NodeState, Report, Stage

MOST_REPORTS = 256
JOBS_KNOWN_S = 3.0
"""After the agent's start launchers connect again."""
LEAVE_S, LEAVE_AT_BOUNDARY_S = 60.0, 900.0
UNANSWERED_S = 60.0
RESET_HELPS_S = 60.0


class Remediator:
    """
    Remedies of one node.

    Args:
        tell: Sends a command to a launcher, such as ``LauncherSocket.tell``; False where it is gone.
        mark: Of this node; None where no remedy is requested.
        leave: Request file of ``holdfast-agent leave``.
        reset: Resets a GPU by its PCI address in the background; returns a function that polls the result.
    """

    def __init__(
        self,
        *,
        settings: RemedySettings,
        tell: "Callable[[JobReport, node_socket.Command], bool]",
        boot_s: float,
        mark: Optional[NodeMark] = None,
        leave: Optional[Path] = None,
        reset: "Optional[Callable[[str], Callable[[], Optional[int]]]]" = None,
    ) -> None:
        self._settings, self._tell, self._mark, self._started_s = settings, tell, mark, boot_s
        self._reset = reset or _reset
        self._restarting = RestartRequests(acts=settings.mode == "act", host=settings.host)
        self._departure = Departure(request=leave, host=settings.host)
        self._reports: dict[str, Report] = {}
        self._leaving = Leaving()
        self._current: Optional[Report] = None
        self._left_s: Optional[float] = None
        """Begin of the hand-overs; None before an order."""
        self._has_left = self._was_asked = self._taken_back = False
        self._is_restored = False
        self._failing_s: Optional[float] = None
        self._refused: list[str] = []
        self._resetting: Optional[Callable[[], Optional[int]]] = None
        self._reset_s: Optional[float] = None
        self._upgraded = ""

    @property
    def phase(self) -> str:
        """Of this node: idle, reported, or the stage of the order for it."""
        report = strongest(self._reports.values())
        if report is None or self._mark is None or self._refusal(report):
            return "idle"
        stage = self._stage(report)
        return "reported" if stage is None else stage.value

    @property
    def problem(self) -> str:
        """Reason why the mark is stuck; else empty."""
        return self._mark.problem if self._mark is not None else ""

    @property
    def _seen(self) -> Optional[NodeState]:
        return self._mark.seen if self._mark is not None else None

    @property
    def leaving(self) -> "dict[str, Any]":
        return self._departure.status()

    def consider(
        self,
        verdicts: Sequence[Verdict],
        *,
        jobs: Sequence[JobReport],
        boot_s: float,
        answers: "Sequence[tuple[JobReport, node_socket.Answer]]" = (),
    ) -> "tuple[Happening, ...]":
        """Take verdicts and answers since the last call (the last verdict on an incident counts); do the next step."""
        for verdict in verdicts:
            self._reports.pop(verdict.incident, None)
            report = report_of(verdict, instance=self._settings.instance_id)
            if report is not None:
                self._reports[verdict.incident] = report
            self._accuse(verdict, boot_s=boot_s)
        while len(self._reports) > MOST_REPORTS:
            del self._reports[next(iter(self._reports))]
        orders: list[tuple[JobReport, node_socket.Command]] = []
        events = self._leaving.hear(answers)
        self._step(jobs, boot_s, orders, events)
        restarts, reported = self._restarting.step(tuple(jobs), boot_s=boot_s)
        leaving, left = self._departure.step(tuple(jobs), tuple(answers))
        for job, command in [*orders, *restarts, *leaving]:
            self._tell(job, command)
        return (*events, *reported, *left)

    def _step(
        self,
        jobs: Sequence[JobReport],
        boot_s: float,
        orders: "list[tuple[JobReport, node_socket.Command]]",
        events: "list[Happening]",
    ) -> None:
        report = self._requested() or strongest(self._reports.values())
        if report is not None and (refusal := self._refusal(report)):
            self._refuse(report, *refusal, events)
            report = None
        if self._mark is None:
            return
        if report is None:
            self._forget()
            self._mark.publish(None)
            return
        if self._current is None or report.incident != self._current.incident:
            self._forget()
        self._current = report
        self._follow(report, jobs, boot_s, orders, events)
        remedy = Remedy.REBOOT if self._upgraded == report.incident else report.remedy
        report = replace(
            report,
            remedy=remedy,
            has_left=self._has_left,
            lost=tuple(sorted(self._leaving.lost(jobs).items())) if self._left_s is not None else (),
            tasks=(*self._leaving.tasks, *self._leaving.requeued) if self._has_left else (),
            taken_back=self._taken_back,
        )
        self._mark.publish(report)
        self._unanswered(report, boot_s, events)

    def _requested(self) -> Optional[Report]:
        """Return the last report while its request stands: tasks are requeued and the answer is watched for."""
        report, seen = self._current, self._seen
        stands = report is not None and seen is not None and bool(seen.request) and self._stage(report) is Stage.ASKED
        return report if stands else None

    def _refusal(self, report: Report) -> "Optional[tuple[str, str]]":
        if self._settings.mode != "act":
            return "observe", f"observe: {report.remedy.value} would be requested (way: {self._settings.way})"
        if self._settings.is_controller:
            return "controller", "this node is the controller, which is never replaced or rebooted"
        if self._settings.way == "none":
            return "no-way", "remedies.way is none: no request is sent"
        return None

    def _forget(self) -> None:
        self._current, self._leaving, self._left_s = None, Leaving(), None
        self._has_left = self._was_asked = self._taken_back = False
        self._resetting, self._reset_s = None, None

    def _stage(self, report: Report) -> Optional[Stage]:
        order = self._seen.order if self._seen is not None else None
        return order.stage if order is not None and order.incident == report.incident else None

    def _follow(
        self,
        report: Report,
        jobs: Sequence[JobReport],
        boot_s: float,
        orders: "list[tuple[JobReport, node_socket.Command]]",
        events: "list[Happening]",
    ) -> None:
        """Hand over as ordered, and notice a request that an operator withdraws."""
        stage = self._stage(report)
        if stage not in (Stage.GO, Stage.ASKED):
            return
        stands = self._seen is not None and bool(self._seen.request)
        self._taken_back = stage is Stage.ASKED and self._was_asked and not stands
        self._was_asked = self._was_asked or stands
        reason, urgent = f"{report.fault}: {report.evidence}", report.when is When.NOW
        if self._left_s is None:
            self._left_s = boot_s
        if self._is_restored:
            orders += self._leaving.again(jobs, incident=report.incident, reason=reason, urgent=urgent)
            self._is_restored = False
        asked, reported = self._leaving.begin(
            jobs, incident=report.incident, reason=reason, host=self._settings.host, urgent=urgent
        )
        orders += asked
        events += reported
        if boot_s - self._started_s < JOBS_KNOWN_S:
            return
        waited_s, most_s = boot_s - self._left_s, LEAVE_S if urgent else LEAVE_AT_BOUNDARY_S
        if not self._has_left and not (self._leaving.is_over(jobs) or waited_s >= most_s):
            return
        self._has_left = True
        if report.remedy is Remedy.RESET_GPU and self._upgraded != report.incident:
            self._try_reset(report, boot_s, events)
            return
        if self._settings.way == "slurm":
            orders += self._leaving.let_go(jobs, incident=report.incident, reason=report.fault)
        if urgent:
            lost = self._leaving.lost(jobs)
            staying = [job for job in jobs if job.job in lost]
            orders += self._leaving.abandon(staying, incident=report.incident, reason=reason)
            for job in staying:
                self._leaving.requeue(job.task)

    def _try_reset(self, report: Report, boot_s: float, events: "list[Happening]") -> None:
        """A device that cannot be reset by itself, or is no better after it, requires a reboot."""
        if self._resetting is None:
            self._resetting = self._reset(report.device)
            return
        code = self._resetting()
        if code == 0 and self._reset_s is None:
            self._reset_s = boot_s
            events.append(self._event(kinds.REMEDY_REQUESTED, report, report.evidence, way="driver"))
        if code not in (None, 0) or (self._reset_s is not None and boot_s - self._reset_s >= RESET_HELPS_S):
            self._upgraded = report.incident

    def _unanswered(self, report: Report, boot_s: float, events: "list[Happening]") -> None:
        seen = self._seen
        is_due = report.has_left and report.when is When.NOW and report.remedy is not Remedy.RESET_GPU
        waits = seen is None or seen.order is None or (is_due and self._stage(report) is Stage.GO)
        problem = self.problem or ("the decider has not answered the report of this node" if waits else "")
        if not problem:
            self._failing_s = None
            return
        self._failing_s = boot_s if self._failing_s is None else self._failing_s
        if boot_s - self._failing_s >= UNANSWERED_S:
            self._refuse(report, "unanswered", f"{problem}; retrying", events)

    def _refuse(self, report: Report, code: str, why: str, events: "list[Happening]") -> None:
        key = f"{code} {report.incident}:{report.remedy.value}"
        if key in self._refused:
            return
        self._refused = [*self._refused[-63:], key]
        events.append(self._event(kinds.REMEDY_REFUSED, report, why, way=self._settings.way, why=code))

    def _event(self, kind: str, report: Report, evidence: str, **more: str) -> Happening:
        detail = {"incident": report.incident, "host": self._settings.host, **more}
        return Happening(kind=kind, fault=report.fault, evidence=evidence, action=report.remedy.value, detail=detail)

    def _accuse(self, verdict: Verdict, *, boot_s: float) -> None:
        """Restart processes that the kernel named; other sources are not trusted."""
        if verdict.withdrawn:
            self._restarting.withdraw(verdict.incident)
        elif verdict.remedy is Remedy.RESTART_PROCESS and verdict.pids:
            evidence = verdict.evidence[-1].text[:300] if verdict.evidence else ""
            self._restarting.accuse(
                verdict.pids, incident=verdict.incident, fault=verdict.fault, evidence=evidence, boot_s=boot_s
            )

    def snapshot(self) -> "dict[str, Any]":
        return {
            "reports": {name: report.to_json() for name, report in self._reports.items()},
            "current": None if self._current is None else self._current.to_json(),
            "leaving": asdict(self._leaving),
            "left_s": self._left_s,
            "has_left": self._has_left,
            "was_asked": self._was_asked,
            "refused": self._refused,
            "upgraded": self._upgraded,
            "restarting": self._restarting.snapshot(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Resume the state of an agent of the same boot and instance; False if the snapshot is invalid."""
        try:
            reports = {str(name): Report.from_json(text) for name, text in snapshot["reports"].items()}
            leaving, left_s = Leaving(**snapshot["leaving"]), snapshot["left_s"]
            current, upgraded = snapshot["current"], str(snapshot["upgraded"])
            has_left, was_asked = bool(snapshot["has_left"]), bool(snapshot["was_asked"])
            refused = [str(key) for key in snapshot["refused"]]
            self._restarting.restore(snapshot["restarting"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        self._reports = {name: report for name, report in reports.items() if report is not None}
        self._current = Report.from_json(current) if current else None
        self._leaving, self._left_s, self._upgraded = leaving, left_s, upgraded
        self._has_left, self._was_asked, self._refused = has_left, was_asked, refused
        self._is_restored = True
        return True

    def close(self) -> None:
        """Stop the thread; the mark stays."""
        if self._mark is not None:
            self._mark.close()


def _reset(device: str) -> "Callable[[], Optional[int]]":
    """Reset a GPU that is unused, if NVIDIA's program exists and may."""
    try:
        process = subprocess.Popen(
            ["timeout", "30", "nvidia-smi", "--gpu-reset", "-i", device],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return lambda: 1
    return process.poll
