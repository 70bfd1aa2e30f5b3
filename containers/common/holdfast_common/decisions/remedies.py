"""
Remedies of a cluster: claim, hand over, request, breaker. Pure; marks on nodes are the only memory.

A report is the mark of a node's agent about its own node. An order is the mark of the one process that decides. Each
pass returns at most one step a node; a step is computed again from fresh state before it is carried out, and repeating
it does nothing. So a successor continues from the marks, whenever the previous decider was killed.

A claim counts from its mark on, and becomes an order only in a later pass: of two deciders, the last to write sees all
claims, so the limit holds for as long as there are two.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Optional

from holdfast_common import kinds
from holdfast_common.faults import Remedy, When

WINDOW_S = 3600.0
TAKEN_WITHIN_S = 1800.0
"""HyperPod's documentation has no time; twice that of replacements on AWS."""
FORCED_AFTER_S = 60.0
MOST_TASKS = 64


class Stage(Enum):
    CLAIM = "claim"
    GO = "go"
    """Ranks leave the node."""
    ASKED = "asked"
    """The remedy is requested."""
    REFUSED = "refused"
    """Manual approval required."""
    ALLOW = "allow"
    """Approved manually."""


@dataclass(frozen=True)
class Report:
    """
    Verdict of a node's agent on its own node, and the state of hand-overs.

    Args:
        instance: Instance id.
        has_left: Hand-overs have ended, after an order.
        lost: Jobs that lose ranks on this node: (name, reason).
        tasks: Slurm tasks to requeue.
        taken_back: The request was seen, and is gone without a boot.
    """

    incident: str
    fault: str
    remedy: Remedy
    when: When
    instance: str = ""
    evidence: str = ""
    device: str = ""
    has_left: bool = False
    lost: "tuple[tuple[str, str], ...]" = ()
    tasks: "tuple[str, ...]" = ()
    taken_back: bool = False

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "remedy": self.remedy.value, "when": self.when.value})

    @staticmethod
    def from_json(text: str) -> "Optional[Report]":
        """Return the report, or None where the text is none."""
        try:
            values = json.loads(text)
            return Report(
                **{name: str(values[name]) for name in ("incident", "fault", "instance", "evidence", "device")},
                remedy=Remedy(values["remedy"]),
                when=When(values["when"]),
                has_left=values["has_left"] is True,
                lost=tuple((str(job), str(why)) for job, why in values["lost"]),
                tasks=tuple(map(str, values["tasks"]))[:MOST_TASKS],
                taken_back=values["taken_back"] is True,
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


@dataclass(frozen=True)
class Order:
    """
    Mark of the decider on a node.

    Args:
        since_s: Last request for the node, of any incident: UTC seconds; 0 for none. It counts for an hour.
        reported: Codes of events that were written.
        tasks: Slurm tasks that were requeued.
        owed: Slurm tasks to requeue, also where the report is gone with the node.
    """

    stage: Stage
    remedy: str = ""
    since_s: float = 0.0
    incident: str = ""
    reported: "tuple[str, ...]" = ()
    tasks: "tuple[str, ...]" = ()
    owed: "tuple[str, ...]" = ()

    def to_text(self) -> str:
        more = json.dumps([self.incident, self.reported, self.tasks, self.owed], separators=(",", ":"))
        return f"{self.stage.value}:{self.remedy}:{int(self.since_s)}:{more}"

    @staticmethod
    def from_text(text: str) -> "Optional[Order]":
        """Return the order, or None where the text is none; an operator writes the stage alone."""
        stage, remedy, since, more = (*text.strip().split(":", 3), "", "", "")[:4]
        try:
            incident, *lists = json.loads(more) if more else ("", (), (), ())
            reported, tasks, owed = map(tuple, lists)
            return Order(Stage(stage), remedy, float(since or 0), str(incident), reported, tasks, owed)
        except (ValueError, TypeError, RecursionError):
            return None


@dataclass(frozen=True)
class NodeState:
    """
    Args:
        request: Remedy that the node's state or label requests from HyperPod; empty for none.
        foreign: Reason or label of others; empty for a request of ours.
        jobs: Names of each job on the node, where the next step ``depends_on_jobs``.
    """

    name: str
    report: Optional[Report] = None
    order: Optional[Order] = None
    request: str = ""
    foreign: str = ""
    jobs: "tuple[frozenset[str], ...]" = ()
    is_gone: bool = False
    """It was taken within the hour, and counts for the breaker alone."""


@dataclass(frozen=True)
class StepEvent:
    """Event of a step; ``why``: code of a refusal."""

    kind: str
    evidence: str
    why: str = ""


@dataclass(frozen=True)
class Step:
    """
    One step of one node: write the event, carry out the effect, then write the mark.

    Args:
        order: None: remove the mark.
        effect: ask, force, requeue, or nothing.
    """

    node: str
    order: Optional[Order]
    effect: str = ""
    task: str = ""
    event: Optional[StepEvent] = None


def depends_on_jobs(report: Optional[Report], order: Optional[Order]) -> bool:
    """Return True if the next step of a node waits for its jobs, or gives up the remains of requeued ones."""
    if report is None or order is None:
        return False
    waits = order.stage is Stage.GO and report.when is When.BOUNDARY
    return waits or (order.stage is Stage.ASKED and bool(order.tasks))


def most(*, nodes: int, share: float) -> int:
    return max(1, int(nodes * share + 1e-9))


def decide(nodes: Iterable[NodeState], *, share: float, way: str, now_s: float) -> "tuple[Step, ...]":
    """Return the next step of each node that has one."""
    nodes = sorted(nodes, key=lambda node: node.name)
    decision = _Decision(nodes, share=share, way=way, now_s=now_s)
    return tuple(step for node in nodes if (step := decision.step(node)) is not None)


class _Decision:
    def __init__(self, nodes: "list[NodeState]", *, share: float, way: str, now_s: float) -> None:
        self._way, self._now_s, self._nodes = way, now_s, sum(not node.is_gone for node in nodes)
        self._most = most(nodes=self._nodes, share=share)
        self._taken = frozenset(node.name for node in nodes if self._is_taken(node))
        self._claims = {node.name for node in nodes if node.order and node.order.stage is Stage.CLAIM}

    def _is_taken(self, node: NodeState) -> bool:
        order = node.order
        if order is not None and (order.stage is Stage.GO or self._now_s - order.since_s < WINDOW_S):
            return True
        return bool(node.request)

    def step(self, node: NodeState) -> Optional[Step]:
        report, order = node.report, node.order
        if order is not None and (report is None or order.stage is Stage.ASKED):
            owed = (*order.owed, *(report.tasks if report is not None and order.incident == report.incident else ()))
            task = next((task for task in owed if task not in order.tasks), "")
            if task and self._way == "slurm":
                return Step(node.name, replace(order, tasks=(*order.tasks, task)), effect="requeue", task=task)
        if report is None:
            stands = order is None or order.stage is Stage.ASKED or node.request
            return None if stands else self._withdraw(node)
        stage = order.stage if order is not None else None
        if order is None or (stage is Stage.ASKED and self._is_of_earlier(order, node, report)):
            return self._begin(node, report)
        if stage is Stage.ALLOW:
            return self._go(node, report) if not node.foreign else None
        if stage is Stage.REFUSED:
            return self._begin(node, report) if "foreign" in order.reported and not node.foreign else None
        if stage is Stage.CLAIM:
            return self._confirm(node, report)
        if stage is Stage.GO:
            return self._ask(node, report, order)
        return self._watch(node, report, order)

    @staticmethod
    def _is_of_earlier(order: Order, node: NodeState, report: Report) -> bool:
        """Return True for another incident, or another remedy than the one that was done."""
        return order.incident != report.incident or (order.remedy != report.remedy.value and not node.request)

    def _begin(self, node: NodeState, report: Report) -> Optional[Step]:
        if node.foreign or node.request:
            stage, why = (Stage.ASKED, "under-way") if node.request else (Stage.REFUSED, "foreign")
            evidence = node.foreign or f"request already pending for this node: {node.request}"
            return self._refuse(node, self._order(node, report, stage), why, evidence)
        others = self._taken - {node.name}
        if len(others) >= self._most:
            evidence = (
                f"circuit breaker open: {', '.join(sorted(others))} of {self._nodes} nodes within an hour;"
                " manual approval required for this node"
            )
            return self._refuse(node, self._order(node, report, Stage.REFUSED), "breaker", evidence)
        if len(others | self._claims) >= self._most:
            return None
        self._claims.add(node.name)
        return Step(node.name, self._order(node, report, Stage.CLAIM))

    def _confirm(self, node: NodeState, report: Report) -> Step:
        if node.foreign or len((self._taken | self._claims) - {node.name}) >= self._most:
            return self._withdraw(node)
        return self._go(node, report)

    def _withdraw(self, node: NodeState) -> Step:
        """Remove the order; a request still counts."""
        order = node.order
        if order is None or self._now_s - order.since_s >= WINDOW_S:
            return Step(node.name, None)
        return Step(node.name, Order(Stage.ASKED, order.remedy, order.since_s))

    def _go(self, node: NodeState, report: Report) -> Step:
        return Step(node.name, self._order(node, report, Stage.GO))

    def _ask(self, node: NodeState, report: Report, order: Order) -> Optional[Step]:
        asked = replace(order, stage=Stage.ASKED, remedy=report.remedy.value, since_s=self._now_s)
        if node.request:
            return Step(node.name, asked)  # its decider was killed just after the request
        if node.foreign:
            return self._refuse(node, self._order(node, report, Stage.REFUSED), "foreign", node.foreign)
        waits = report.when is When.BOUNDARY and self._way != "slurm" and (report.lost or node.jobs)
        if not report.has_left or order.incident != report.incident or report.remedy is Remedy.RESET_GPU or waits:
            return None if order.incident == report.incident else self._go(node, report)
        if "requested" in order.reported:
            return Step(node.name, asked, effect="ask")
        lost = [f"job {job} loses its ranks on this node: {why}" for job, why in report.lost]
        evidence = "; ".join([report.evidence, *lost] if report.evidence else lost)
        # First, since the request may be retried, and the node may be gone right after it.
        reported = (*order.reported, "requested")
        ready = replace(order, since_s=self._now_s, reported=reported, owed=report.tasks)
        return Step(node.name, ready, event=StepEvent(kinds.REMEDY_REQUESTED, evidence))

    def _watch(self, node: NodeState, report: Report, order: Order) -> Optional[Step]:
        waited_s = self._now_s - order.since_s
        if report.taken_back and not node.request:
            evidence = "the request was withdrawn manually"
            return self._refuse(node, self._order(node, report, Stage.REFUSED), "taken-back", evidence)
        if waited_s >= TAKEN_WITHIN_S and "stalled" not in order.reported:
            reported = replace(order, reported=(*order.reported, "stalled"))
            evidence = f"no response to the request for {waited_s / 60:.0f} min"
            return self._refuse(node, reported, "stalled", evidence)
        remains = bool(node.jobs) and all(job & set(order.tasks) for job in node.jobs)
        is_stuck = remains and report.when is When.NOW and waited_s >= FORCED_AFTER_S
        if self._way == "slurm" and is_stuck and not {"under-way", "forced"} & set(order.reported):
            return Step(node.name, replace(order, reported=(*order.reported, "forced")), effect="force")
        return None

    def _order(self, node: NodeState, report: Report, stage: Stage) -> Order:
        before_s = node.order.since_s if node.order is not None else 0.0
        since_s = self._now_s if stage is Stage.ASKED else before_s
        return Order(stage, report.remedy.value, since_s, report.incident)

    @staticmethod
    def _refuse(node: NodeState, order: Order, why: str, evidence: str) -> Step:
        reported = order.reported if why in order.reported else (*order.reported, why)
        return Step(node.name, replace(order, reported=reported), event=StepEvent(kinds.REMEDY_REFUSED, evidence, why))


__all__ = ["NodeState", "Order", "Report", "Stage", "Step", "StepEvent", "decide", "depends_on_jobs"]
