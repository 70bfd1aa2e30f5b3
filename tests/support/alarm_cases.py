"""For each alarm of a stack: what sets it off, when, and what leaves it quiet for two hours. Minutes count from 0."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stack_alarms import Datum, Feed, Line

from holdfast_common import kinds

Properties = Mapping[str, Any]
Feeding = Callable[[Properties], Feed]
"""From the alarm's own properties, such as its threshold, to what happens."""
HOUR, LONG = 60, 120


@dataclass(frozen=True, kw_only=True)
class AlarmCase:
    """
    One alarm of one orchestrator.

    Args:
        fires: With this it goes to ALARM in minute ``at``, and is not there before.
        at: The minute at whose end it does.
        over: The minute at whose end it is OK again; None: what set it off goes on.
        quiet: With this it never does.
    """

    fires: Feeding
    at: int
    over: int | None
    quiet: Feeding


def own(kind: str, *minutes: int, **content: Any) -> Feed:
    """Events of Holdfast."""
    source = "job" if kind.startswith("job_") else "agent"
    return [Line(minute, {"kind": kind, "source": source, **content}) for minute in minutes]


def health(status: str, reason: str, minute: int) -> Line:
    summary = {"HealthStatus": status, "HealthStatusReason": f"HMA has detected fault type {reason} on this node"}
    kind = "SageMaker HyperPod Cluster Node Health Event"
    return Line(minute, {"detail-type": kind, "detail": {"HealthSummary": summary}})


def instance(level: str, minute: int) -> Line:
    details = {"ResourceType": "Instance", "EventLevel": level}
    return Line(minute, {"detail-type": "SageMaker HyperPod Cluster Event", "detail": {"EventDetails": details}})


def sent(name: str, value: Callable[[Properties], float]) -> Feeding:
    """A metric that is published every minute: Container Insights', or that of FSx."""

    def feed(properties: Properties) -> Feed:
        (one,) = [stat["Metric"] for stat in _metrics(properties) if stat["Metric"]["MetricName"] == name]
        place = tuple((each["Name"], _text(each["Value"])) for each in one["Dimensions"])
        return [Datum(minute, one["Namespace"], name, value(properties), place) for minute in range(LONG)]

    return feed


def _metrics(properties: Properties) -> list[dict[str, Any]]:
    if "Metrics" in properties:
        return [one["MetricStat"] for one in properties["Metrics"] if "MetricStat" in one]
    return [{"Metric": {key: properties.get(key, []) for key in ("Namespace", "MetricName", "Dimensions")}}]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "referred-to"


def limit(*, more: float = 0.0) -> Callable[[Properties], float]:
    return lambda properties: float(properties["Threshold"]) + more


def lost(*, replaced: int) -> Feeding:
    """As many nodes as there are spares, of which some come back a quarter of an hour later."""

    def feed(properties: Properties) -> Feed:
        count = int(properties["Threshold"])
        return [*own(kinds.NODE_LOST, *[1] * count), *own(kinds.NODE_REPLACED, *[1] * replaced)]

    return feed


EVENTS = {
    "NodeUnhealthy": AlarmCase(
        fires=lambda _: [health("Unhealthy", "NvidiaErrorTerminate", 5)],
        at=5,
        over=8,
        quiet=lambda _: [health("Healthy", "NvidiaErrorTerminate", 5), instance("Error", 6)],
    ),
    "ReplacementFailed": AlarmCase(
        fires=lambda _: [instance("Error", 5)],
        at=5,
        over=8,
        quiet=lambda _: [instance("Info", 5), instance("Warn", 6), health("Unhealthy", "EfaError", 7)],
    ),
    "EfaFaults": AlarmCase(
        fires=lambda _: [health("Unhealthy", "EfaError", 5)],
        at=5,
        over=8,
        quiet=lambda _: [health("Unhealthy", "NvidiaErrorReboot", 5), health("Healthy", "EfaError", 6)],
    ),
    "LustreFreeSpace": AlarmCase(
        fires=sent("FreeDataStorageCapacity", limit(more=-1)),
        at=4,
        over=None,
        quiet=sent("FreeDataStorageCapacity", limit()),
    ),
}
"""Of every cluster: HyperPod's events, and FSx."""

SLURM = {
    **EVENTS,
    "FaultFound": AlarmCase(
        fires=lambda _: own(kinds.VERDICT, 5, action="replace"),
        at=5,
        over=8,
        quiet=lambda _: [
            *own(kinds.VERDICT, 5, action="restart-process", detail={"severity": "process"}),
            *own(kinds.VERDICT_WITHDRAWN, 6, action="replace"),
        ],
    ),
    "BreakerOpen": AlarmCase(
        fires=lambda _: own(kinds.REMEDY_REFUSED, 5, detail={"why": "breaker"}),
        at=5,
        over=8,
        quiet=lambda _: own(kinds.REMEDY_REFUSED, 5, detail={"why": "observe"}),
    ),
    "DetectorLost": AlarmCase(
        fires=lambda _: own(kinds.DETECTOR_LOST, 5, detail={"detector": "kernel-log"}),
        at=5,
        over=8,
        quiet=lambda _: [*own(kinds.DETECTOR_BACK, 5), *own(kinds.RECORDS_LOST, 6), *own(kinds.AGENT_STARTED, 7)],
    ),
    "NoSpareLeft": AlarmCase(fires=lost(replaced=0), at=1, over=HOUR + 1, quiet=lost(replaced=1)),
    "GpuIdle": AlarmCase(
        fires=lambda _: own(kinds.JOB_PROGRESS, *range(5)),
        at=34,
        over=None,
        quiet=lambda _: own(kinds.JOB_PROGRESS, *range(0, LONG, 20)),
    ),
}

EKS = {
    **EVENTS,
    "NoSpareLeft": AlarmCase(
        fires=sent("hyperpod_node_health_status_schedulable", limit()),
        at=2,
        over=None,
        quiet=sent("hyperpod_node_health_status_schedulable", limit(more=1)),
    ),
    "GpuIdle": AlarmCase(
        fires=sent("node_gpu_utilization", limit(more=-1)),
        at=29,
        over=None,
        quiet=sent("node_gpu_utilization", limit()),
    ),
    "EfaDrops": AlarmCase(
        fires=sent("node_efa_rx_dropped", limit()),
        at=4,
        over=None,
        quiet=sent("node_efa_rx_dropped", limit(more=-0.5)),
    ),
}
