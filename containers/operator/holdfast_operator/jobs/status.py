"""Status of a HoldfastJob: what its next decisions need, and what users read."""

import calendar
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from holdfast_operator.jobs.progress import FIELDS

RUNNING, SUSPENDED, COMPLETE, FAILED, INVALID = "Running", "Suspended", "Complete", "Failed", "Invalid"


@dataclass(frozen=True, kw_only=True)
class Condition:
    type: str
    is_true: bool
    reason: str
    message: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Stop:
    """End of all launchers, by their own decision or the operator's."""

    what: str
    """Exception, or the whole reason."""
    step: int | None = None
    node: str = ""
    """Node of the rank that raised it; empty if it is not known."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """Restarts since the budgets count from 0."""

    index: int = 0
    launchers: int = 0
    jobs: int = 0


@dataclass(frozen=True, kw_only=True)
class Status:
    conditions: tuple[Condition, ...] = ()
    nodes: int = 0
    """Pods that run."""
    started_s: float | None = None
    whole_s: float | None = None
    """Time at which all nodes ran for the first time."""
    finished_s: float | None = None
    """Time of the first pod that ended with 0."""
    completed_s: float | None = None
    launcher_restarts: int = 0
    job_restarts: int = 0
    period: Period = Period()
    counted: tuple[str, ...] = ()
    """UIDs of failed pods that are charged already and still exist."""
    failed_s: float | None = None
    """Time of the newest charged failure."""
    node_failures: tuple[tuple[str, int], ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    """Nodes without pods of this job, and why."""
    stops: tuple[Stop, ...] = ()
    restarting: tuple[str, ...] = ()
    """UIDs of pods that are restarted together; none is created while one of them exists."""
    rules_off: tuple[tuple[str, str], ...] = ()
    """Log rules that are not applied any more, and why."""
    progress: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``FIELDS``, as a ``Progress`` writes them."""

    def condition(self, kind: str) -> Condition | None:
        return next((one for one in self.conditions if one.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.is_true

    @property
    def has_ended(self) -> bool:
        return self.is_true(COMPLETE) or self.is_true(FAILED)

    @property
    def state(self) -> str:
        kinds = (COMPLETE, FAILED, INVALID, SUSPENDED, RUNNING)
        return next((kind for kind in kinds if self.is_true(kind)), "Pending")

    def manifest(self, *, generation: int, selector: str) -> dict[str, Any]:
        """Return the object's ``status``; None removes a field in a merge patch."""
        return {
            "observedGeneration": generation,
            "state": self.state,
            "conditions": [
                {
                    "type": one.type,
                    "status": "True" if one.is_true else "False",
                    "reason": one.reason,
                    "message": one.message,
                    "lastTransitionTime": stamp(one.since_s),
                }
                for one in self.conditions
            ],
            "nodes": self.nodes,
            "selector": selector,
            "startTime": _stamp(self.started_s),
            "wholeTime": _stamp(self.whole_s),
            "finishTime": _stamp(self.finished_s),
            "completionTime": _stamp(self.completed_s),
            "restarts": {"launchers": self.launcher_restarts, "jobs": self.job_restarts},
            "restartPeriod": asdict(self.period),
            "countedPods": list(self.counted),
            "lastFailureTime": _stamp(self.failed_s),
            "nodeFailures": [{"node": node, "failures": count} for node, count in self.node_failures],
            "excludedNodes": [{"node": node, "reason": reason} for node, reason in self.excluded],
            "stops": [{"what": one.what, "step": one.step, "node": one.node} for one in self.stops],
            "restartingPods": list(self.restarting),
            "stoppedLogRules": [{"name": name, "reason": reason} for name, reason in self.rules_off],
            **self.progress,
        }


def read_status(found: Mapping[str, Any]) -> Status:
    restarts = found.get("restarts") or {}
    return Status(
        conditions=tuple(
            Condition(
                type=one["type"],
                is_true=one["status"] == "True",
                reason=one.get("reason", ""),
                message=one.get("message", ""),
                since_s=_seconds(one.get("lastTransitionTime")) or 0.0,
            )
            for one in found.get("conditions") or ()
        ),
        nodes=found.get("nodes", 0),
        started_s=_seconds(found.get("startTime")),
        whole_s=_seconds(found.get("wholeTime")),
        finished_s=_seconds(found.get("finishTime")),
        completed_s=_seconds(found.get("completionTime")),
        launcher_restarts=restarts.get("launchers", 0),
        job_restarts=restarts.get("jobs", 0),
        period=Period(**(found.get("restartPeriod") or {})),
        counted=tuple(found.get("countedPods") or ()),
        failed_s=_seconds(found.get("lastFailureTime")),
        node_failures=tuple((one["node"], one["failures"]) for one in found.get("nodeFailures") or ()),
        excluded=tuple((one["node"], one.get("reason", "")) for one in found.get("excludedNodes") or ()),
        stops=tuple(
            Stop(what=one["what"], step=one.get("step"), node=one.get("node", "")) for one in found.get("stops") or ()
        ),
        restarting=tuple(found.get("restartingPods") or ()),
        rules_off=tuple((one["name"], one.get("reason", "")) for one in found.get("stoppedLogRules") or ()),
        progress={name: found[name] for name in FIELDS if name in found},
    )


def with_condition(status: Status, kind: str, *, is_true: bool, reason: str, message: str = "", now_s: float) -> Status:
    """Set a condition; its time changes with its truth only."""
    old = status.condition(kind)
    since_s = old.since_s if old is not None and old.is_true == is_true else now_s
    new = Condition(type=kind, is_true=is_true, reason=reason, message=message, since_s=since_s)
    others: Sequence[Condition] = [one for one in status.conditions if one.type != kind]
    at = next((at for at, one in enumerate(status.conditions) if one.type == kind), len(others))
    return replace(status, conditions=(*others[:at], new, *others[at:]))


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _stamp(seconds: float | None) -> str | None:
    return None if seconds is None else stamp(seconds)


def _seconds(text: str | None) -> float | None:
    return None if not text else float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
