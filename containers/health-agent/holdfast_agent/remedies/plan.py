"""
Remedy of a node, step by step: claim, hand over, request, verify. Pure: the time is given.

Each step takes news and returns at most one request to the executor, commands to launchers, and events.
docs/concepts/remedies.md has the order and its reasons.
"""

from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, Optional

from holdfast_agent.launchers import JobReport
from holdfast_agent.remedies.breaker import RENEW_S, SETTLE_S, Ruling, Stage, confirmed, is_unlimited, ruling
from holdfast_agent.remedies.leaving import Leaving
from holdfast_agent.remedies.need import Need
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.words import Answer, Request, View
from holdfast_agent.signals import Happening
from holdfast_common import Remedy, When, kinds, node_socket

JOBS_KNOWN_S = 3.0
"""After the agent's start launchers connect again."""
LEAVE_S, LEAVE_AT_BOUNDARY_S = 60.0, 900.0
LOOK_S, PERSON_LOOK_S = 10.0, 30.0
TAKEN_WITHIN_S = 1800.0
"""HyperPod's documentation has no time; twice that of replacements on AWS."""
FORCED_AFTER_S = 60.0
RESET_HELPS_S = 60.0
LONGEST_REST_S = 30.0
MOST_TASKS = 64
UNANSWERED_S = 60.0


class Phase(Enum):
    IDLE = "idle"
    CLAIMING = "claiming"
    RULING = "ruling"
    GOING = "going"
    CONFIRMING = "confirming"
    LEAVING = "leaving"
    ASKING = "asking"
    ASKED = "asked"
    REFUSED = "refused"


_BEFORE_ASKING = (Phase.CLAIMING, Phase.RULING, Phase.GOING, Phase.CONFIRMING, Phase.LEAVING, Phase.REFUSED)


@dataclass(frozen=True)
class Situation:
    """News since the last step; ``need`` is the strongest, None: healthy."""

    boot_s: float
    need: Optional[Need] = None
    jobs: "tuple[JobReport, ...]" = ()
    hands: "tuple[Answer, ...]" = ()
    launchers: "tuple[tuple[JobReport, node_socket.Answer], ...]" = ()


@dataclass
class Decision:
    request: Optional[Request] = None
    orders: "list[tuple[JobReport, node_socket.Command]]" = field(default_factory=list)
    events: "list[Happening]" = field(default_factory=list)
    is_cured: bool = False
    """The remedy is done: earlier verdicts no longer apply."""


class Plan:
    def __init__(self, *, settings: RemedySettings, started_s: float) -> None:
        self._settings, self._started_s = settings, started_s
        self.phase = Phase.IDLE
        self.need: Optional[Need] = None
        self.problem = ""
        """Reason why the remedy is stuck; else empty."""
        self._leaving = Leaving()
        self._number = 0
        self._open: Optional[Request] = None
        self._since_s = started_s
        self._due_s = started_s
        self._claimed_s = started_s
        self._failing_s: Optional[float] = None
        self._rest_s = 1.0
        self._allowed = self._foreign = self._is_restored = False
        self._refusals: list[str] = []
        self._view: Optional[View] = None

    # --- memory

    def snapshot(self) -> "dict[str, Any]":
        return {
            "phase": self.phase.value,
            "need": None if self.need is None else self.need.to_json(),
            "leaving": asdict(self._leaving),
            "since_s": self._since_s,
            "allowed": self._allowed,
            "foreign": self._foreign,
            "refusals": self._refusals,
        }

    def restore(self, snapshot: "dict[str, Any]") -> None:
        """Resume the state of an agent of the same boot; raises KeyError, TypeError or ValueError."""
        phase = Phase(snapshot["phase"])
        # What was claimed is claimed again: that does nothing where it stands.
        self.phase = Phase.CLAIMING if phase in (Phase.RULING, Phase.GOING, Phase.CONFIRMING) else phase
        self.need = None if snapshot["need"] is None else Need.from_json(snapshot["need"])
        self._leaving = Leaving(**snapshot["leaving"])
        self._since_s = float(snapshot["since_s"])
        self._allowed, self._foreign = bool(snapshot["allowed"]), bool(snapshot["foreign"])
        self._refusals = [str(key) for key in snapshot["refusals"]]
        self._is_restored = True

    # --- the step

    def step(self, now: Situation) -> Decision:
        decision = Decision()
        decision.events += self._leaving.hear(now.launchers)
        for answer in now.hands:
            if self._open is not None and answer.number == self._open.number:
                self._hear(answer, now, decision)
        self._follow_need(now, decision)
        if self._open is None and self.phase is not Phase.IDLE and now.boot_s >= self._due_s:
            self._next(now, decision)
        return decision

    def _follow_need(self, now: Situation, decision: Decision) -> None:
        """Handle an incident that is over, requires more, or is the first."""
        if self.phase is Phase.IDLE:
            if now.need is not None:
                self._begin(now.need, now, decision)
        elif self.phase in _BEFORE_ASKING:
            if now.need is None:
                self._end(now, decision)
            else:
                self.need = now.need

    def _begin(self, need: Need, now: Situation, decision: Decision) -> None:
        self.need = need
        settings = self._settings
        why = ""
        if settings.mode != "act":
            why = f"observe: {need.remedy.value} would be requested (way: {settings.way})"
        elif settings.is_controller:
            why = "this node is Slurm's controller, which is never replaced or rebooted"
        elif settings.way == "none":
            why = "remedies.way is none: no request is sent"
        if why:
            code = "observe" if settings.mode != "act" else "controller" if settings.is_controller else "no-way"
            self._refuse(code, why, decision)
            self.need = None
            return
        self._leaving, self._allowed, self._foreign = Leaving(), False, False
        self._enter(Phase.CLAIMING, now)

    def _end(self, now: Situation, decision: Decision) -> None:
        if self._open is not None:
            return  # its answer decides from what
        self._enter(Phase.IDLE, now)
        self.need = None
        self._request(decision, "clear")

    def _next(self, now: Situation, decision: Decision) -> None:
        assert self.need is not None or self.phase is Phase.ASKED
        if self.phase is Phase.CLAIMING:
            self._request(decision, "claim")
        elif self.phase is Phase.RULING and now.boot_s - self._claimed_s > RENEW_S:
            self._enter(Phase.CLAIMING, now)
            self._request(decision, "claim")
        elif self.phase in (Phase.RULING, Phase.CONFIRMING, Phase.REFUSED):
            self._request(decision, "look")
        elif self.phase is Phase.GOING:
            self._request(decision, "go")
        elif self.phase is Phase.LEAVING:
            self._leave(now, decision)
        elif self.phase is Phase.ASKING:
            self._ask(now, decision)
        elif self.phase is Phase.ASKED:
            self._watch(now, decision)

    # --- before the node is asked for

    def _leave(self, now: Situation, decision: Decision) -> None:
        need = self.need
        assert need is not None
        reason = f"{need.fault}: {need.evidence}"
        urgent = need.when is When.NOW
        if self._is_restored:
            decision.orders += self._leaving.again(now.jobs, incident=need.incident, reason=reason, urgent=urgent)
            self._is_restored = False
        orders, reported = self._leaving.begin(
            now.jobs, incident=need.incident, reason=reason, host=self._settings.host, urgent=urgent
        )
        decision.orders += orders
        decision.events += reported
        waited_s = now.boot_s - self._since_s
        most_s = LEAVE_S if need.when is When.NOW else LEAVE_AT_BOUNDARY_S
        if now.boot_s - self._started_s < JOBS_KNOWN_S or (not self._leaving.is_over(now.jobs) and waited_s < most_s):
            return
        if need.when is When.BOUNDARY and not self._waits_itself and (self._leaving.lost(now.jobs) or self._has_jobs):
            # Until somebody has room for the ranks, or the jobs have ended.
            if not self._leaving.lost(now.jobs):
                self._request(decision, "look")
                self._due_s = now.boot_s + LOOK_S
            return
        self._enter(Phase.ASKED if self._foreign else Phase.ASKING, now)

    @property
    def _waits_itself(self) -> bool:
        """A failed node of Slurm is taken when its last job has ended, and gets no other one."""
        return self._settings.way == "slurm"

    @property
    def _has_jobs(self) -> bool:
        return bool(self._view and self._view.jobs)

    def _ask(self, now: Situation, decision: Decision) -> None:
        """Report first: the node may be taken at the moment of the request."""
        assert self.need is not None
        if self.need.remedy is Remedy.RESET_GPU:
            self._request(decision, "reset", subject=self.need.device)
            return
        costs = self._lose(now, decision)
        self._let_go(now, decision)
        if not self._leaving.is_reported:
            self._leaving.is_reported = True
            text = "; ".join(part for part in (self.need.evidence, costs) if part)
            decision.events.append(self._requested(way=self._settings.way, evidence=text))
        tasks = self._leaving.tasks if self._settings.way == "slurm" else []
        self._request(decision, "ask", subject=",".join(tasks[:MOST_TASKS]))

    # --- after it

    def _watch(self, now: Situation, decision: Decision) -> None:
        """Handle ranks that still leave, requeue tasks, and wait for the response."""
        if now.need is not None and not self._is_restored:
            orders, reported = self._leaving.begin(
                now.jobs, incident=now.need.incident, reason=now.need.fault, host=self._settings.host
            )
            decision.orders += orders
            decision.events += reported
            self._let_go(now, decision)
        if self._leaving.tasks:
            self._request(decision, "requeue", subject=self._leaving.tasks[0])
            return
        self._request(decision, "look")
        self._due_s = now.boot_s + LOOK_S

    def _let_go(self, now: Situation, decision: Decision) -> None:
        """Release spares: a failed node of Slurm is taken only when its last job has ended."""
        if self._settings.way == "slurm" and self.need is not None:
            decision.orders += self._leaving.let_go(now.jobs, incident=self.need.incident, reason=self.need.fault)

    def _lose(self, now: Situation, decision: Decision) -> str:
        """If it cannot wait: end ranks that stay, with their tasks."""
        lost = self._leaving.lost(now.jobs)
        if self.need is not None and self.need.when is When.NOW:
            staying = [job for job in now.jobs if job.job in lost]
            reason = f"{self.need.fault}: {self.need.evidence}"
            decision.orders += self._leaving.abandon(staying, incident=self.need.incident, reason=reason)
            for job in staying:
                self._leaving.requeue(job.task)
        return "; ".join(f"job {job} loses its ranks on this node: {why}" for job, why in sorted(lost.items()))

    # --- answers of the hands

    def _hear(self, answer: Answer, now: Situation, decision: Decision) -> None:
        request, self._open = self._open, None
        assert request is not None
        self._view = answer.view or self._view
        if answer.outcome == "failed":
            self._fail(answer, now, decision)
            return
        self._failing_s, self._rest_s, self.problem = None, 1.0, ""
        if request.deed == "requeue":
            self._leaving.tasks = [task for task in self._leaving.tasks if task != request.subject]
            self._leaving.requeued.append(request.subject)
        elif request.deed == "reset":
            self._on_reset(answer, now, decision)
        elif answer.outcome == "refused" and request.deed not in ("force", "clear", "refuse"):
            self._refuse("foreign", answer.why, decision)
            self._enter(Phase.REFUSED, now, due_in_s=PERSON_LOOK_S)
        elif request.deed == "claim" and self.phase is Phase.CLAIMING:
            self._on_claim(answer, now, decision)
        elif request.deed == "go" and self.phase is Phase.GOING:
            free = self._allowed or (self._view is not None and self._is_free(self._view))
            self._enter(Phase.LEAVING if free else Phase.CONFIRMING, now)
        elif request.deed == "ask" and self.phase is Phase.ASKING:
            self._on_ask(answer, request.subject, now, decision)
        elif request.deed == "look" and answer.view is not None:
            self._on_look(answer.view, now, decision)

    def _fail(self, answer: Answer, now: Situation, decision: Decision) -> None:
        self.problem = answer.why
        self._failing_s = now.boot_s if self._failing_s is None else self._failing_s
        self._due_s = now.boot_s + self._rest_s
        self._rest_s = min(2 * self._rest_s, LONGEST_REST_S)
        if now.boot_s - self._failing_s >= UNANSWERED_S and self.need is not None:
            self._refuse("unanswered", f"{answer.why}; retrying", decision)

    def _is_free(self, view: View) -> bool:
        return is_unlimited(nodes=view.nodes, share=self._settings.share)

    def _on_claim(self, answer: Answer, now: Situation, decision: Decision) -> None:
        view = answer.view
        self._claimed_s = now.boot_s
        if view is not None and view.is_controller:
            self._refuse("controller", "this node is the controller, which is never replaced or rebooted", decision)
            self._enter(Phase.REFUSED, now, due_in_s=PERSON_LOOK_S)
        elif answer.outcome == "in-use":
            self._refuse("under-way", answer.why, decision)
            self._foreign = True
            self._enter(Phase.LEAVING, now)
        elif view is not None and self._is_free(view):
            self._enter(Phase.GOING, now)
        else:
            self._enter(Phase.RULING, now, due_in_s=SETTLE_S)

    def _on_ask(self, answer: Answer, subject: str, now: Situation, decision: Decision) -> None:
        assert self.need is not None
        if answer.outcome == "in-use":
            self._refuse("under-way", answer.why, decision)
        else:
            done = subject.split(",") if subject else []
            self._leaving.tasks = [task for task in self._leaving.tasks if task not in done]
            self._leaving.requeued += done
        self._enter(Phase.ASKED, now)

    def _on_reset(self, answer: Answer, now: Situation, decision: Decision) -> None:
        assert self.need is not None
        if answer.outcome == "done":
            decision.events.append(self._requested(way="driver", evidence=self.need.evidence))
            self._enter(Phase.ASKED, now, due_in_s=LOOK_S)
        else:
            # The device cannot be reset by itself: the next remedy is the node's.
            self.need = replace(self.need, remedy=Remedy.REBOOT)
            self._enter(Phase.ASKING, now)

    def _on_look(self, view: View, now: Situation, decision: Decision) -> None:
        own = {mark.stage for mark in view.marks if mark.node == view.me}
        if self.phase is Phase.RULING:
            self._rule(view, now, decision)
        elif self.phase is Phase.CONFIRMING:
            share = self._settings.share
            ok = confirmed(view.marks, me=view.me, nodes=view.nodes, share=share, now_s=view.now_s)
            self._enter(Phase.LEAVING if ok else Phase.CLAIMING, now)
        elif self.phase is Phase.REFUSED:
            if Stage.ALLOW in own:
                self._allowed = True
                self._enter(Phase.GOING, now)
            elif self._last_refusal == "foreign" and not view.foreign:
                self._enter(Phase.CLAIMING, now)
            else:
                self._due_s = now.boot_s + PERSON_LOOK_S
        elif self.phase is Phase.ASKED:
            self._on_asked(view, now, decision)

    def _rule(self, view: View, now: Situation, decision: Decision) -> None:
        share = self._settings.share
        decided = ruling(view.marks, me=view.me, nodes=view.nodes, share=share, now_s=view.now_s)
        if decided is Ruling.GO:
            self._allowed = any(mark.node == view.me and mark.stage is Stage.ALLOW for mark in view.marks)
            self._enter(Phase.GOING, now)
        elif decided is Ruling.WAIT:
            self._due_s = now.boot_s + SETTLE_S
        else:
            asked = sorted({mark.node for mark in view.marks if mark.stage is Stage.ASKED and mark.node != view.me})
            why = (
                f"circuit breaker open: {', '.join(asked)} of {view.nodes} nodes within an hour, and the share is"
                f" {share:g}; manual approval required for this node"
            )
            self._refuse("breaker", why, decision)
            self._enter(Phase.REFUSED, now, due_in_s=PERSON_LOOK_S)
            self._request(decision, "refuse")

    def _on_asked(self, view: View, now: Situation, decision: Decision) -> None:
        waited_s = now.boot_s - self._since_s
        stands = view.is_asked or bool(view.asks)
        if self._settings.way == "api":  # of which nothing is to be seen at the node but the mark
            stands = any(mark.node == view.me and mark.stage is Stage.ASKED for mark in view.marks)
        if self.need is not None and self.need.remedy is Remedy.RESET_GPU:
            self._after_reset(now, waited_s)
        elif not stands and self._is_restored:
            # It was done, and the agent began again with the node.
            self._enter(Phase.IDLE, now)
            self.need, decision.is_cured = None, True
        elif not stands and now.need is not None:
            self._refuse("taken-back", "the request was withdrawn manually", decision)
            self._enter(Phase.REFUSED, now, due_in_s=PERSON_LOOK_S)
        elif not stands and now.need is None:
            self._enter(Phase.IDLE, now)
            self.need = None
        elif waited_s >= TAKEN_WITHIN_S and self.need is not None:
            self._refuse("stalled", f"no response to the request for {waited_s / 60:.0f} min", decision)
        elif self._may_force(view, waited_s):
            self._request(decision, "force")
        self._is_restored = False

    def _after_reset(self, now: Situation, waited_s: float) -> None:
        assert self.need is not None
        if now.need is None:
            self._enter(Phase.IDLE, now)
            self.need = None
        elif waited_s >= RESET_HELPS_S:
            self.need = replace(self.need, remedy=Remedy.REBOOT)
            self._enter(Phase.ASKING, now)

    def _may_force(self, view: View, waited_s: float) -> bool:
        """Jobs with nothing but unkillable processes would keep a failed node for ever."""
        if self._settings.way != "slurm" or self._foreign or self.need is None or self.need.when is not When.NOW:
            return False
        ours = set(self._leaving.requeued)
        return (
            waited_s >= FORCED_AFTER_S and bool(view.jobs) and all(ours & {job.task, job.number} for job in view.jobs)
        )

    # --- words

    def _enter(self, phase: Phase, now: Situation, *, due_in_s: float = 0.0) -> None:
        self.phase, self._since_s, self._due_s = phase, now.boot_s, now.boot_s + due_in_s

    def _request(self, decision: Decision, deed: str, *, subject: str = "") -> None:
        self._number += 1
        asks = deed in ("claim", "go", "refuse", "ask", "force") and self.need is not None
        remedy = self.need.remedy.value if asks and self.need is not None else ""
        if deed == "claim" and self.need is not None:
            subject = self.need.fault
        self._open = decision.request = Request(number=self._number, deed=deed, remedy=remedy, subject=subject)

    @property
    def _last_refusal(self) -> str:
        return self._refusals[-1].partition(" ")[0] if self._refusals else ""

    def _refuse(self, code: str, why: str, decision: Decision) -> None:
        assert self.need is not None
        key = f"{code} {self.need.key}"
        if key in self._refusals:
            self._refusals.remove(key)
            self._refusals.append(key)
            return
        self._refusals = [*self._refusals[-63:], key]
        detail = {"incident": self.need.incident, "way": self._settings.way, "host": self._settings.host, "why": code}
        action, fault = self.need.remedy.value, self.need.fault
        reported = Happening(kind=kinds.REMEDY_REFUSED, fault=fault, evidence=why, action=action, detail=detail)
        decision.events.append(reported)

    def _requested(self, *, way: str, evidence: str) -> Happening:
        assert self.need is not None
        detail = {"incident": self.need.incident, "way": way, "host": self._settings.host}
        action, fault = self.need.remedy.value, self.need.fault
        return Happening(kind=kinds.REMEDY_REQUESTED, fault=fault, evidence=evidence, action=action, detail=detail)
