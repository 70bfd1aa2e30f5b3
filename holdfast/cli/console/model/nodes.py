"""Nodes of the page: by group, with health, ranks and spares. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.cli.console.state import JobState
from holdfast_common import Incident, LostDetector, plain

Json = dict[str, Any]
GOOD, WARN, BAD, CHANGING = "good", "warn", "bad", "changing"
_CHANGING = frozenset(("Pending", "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress", "NotFound"))
"""HyperPod's instance states on the way to another (API_ClusterInstanceStatusDetails)."""


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """Instance as ListClusterNodes has it."""

    instance_id: str
    group: str
    instance_type: str
    host: str
    status: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """Instance group as DescribeCluster has it."""

    name: str
    instance_type: str
    target: int


def groups_of(
    groups: Sequence[GroupFacts],
    nodes: Sequence[NodeFacts],
    *,
    jobs: Iterable[JobState],
    incidents: Iterable[Incident],
    detectors: Iterable[LostDetector],
) -> list[Json]:
    roles = _roles(jobs)
    faults = {one.node: one for one in incidents if one.is_open and one.node}
    lost: dict[str, list[str]] = {}
    for one in detectors:
        lost.setdefault(one.node, []).append(f"{one.detector}{f' {one.part}' if one.part else ''}: {one.evidence}")
    known = {one.name: one for one in groups}
    for node in nodes:  # a node may outlive its group for a moment
        known.setdefault(node.group, GroupFacts(name=node.group, instance_type=node.instance_type, target=0))
    return [
        {
            "name": plain(group.name),
            "type": plain(group.instance_type),
            "target": group.target,
            "nodes": [
                _node(node, role=roles.get(node.instance_id, {}), fault=faults.get(node.instance_id), lost=lost)
                for node in nodes
                if node.group == group.name
            ],
        }
        for group in known.values()
    ]


def _roles(jobs: Iterable[JobState]) -> dict[str, Json]:
    roles: dict[str, Json] = {}
    for job in jobs:
        if job.ended_by:
            continue
        each, rest = divmod(job.world_size or 0, len(job.nodes) or 1)
        for place, node in enumerate(job.nodes):
            ranks = f"rank {place}" if (each, rest) == (1, 0) else f"{each} ranks" if each and not rest else "ranks"
            roles[node] = {"role": "ranks", "job": plain(job.job), "ranks": ranks}
        for node in job.spares:
            roles.setdefault(node, {"role": "spare", "job": plain(job.job), "ranks": "spare"})
    return roles


def _node(node: NodeFacts, *, role: Json, fault: Incident | None, lost: Mapping[str, Sequence[str]]) -> Json:
    detectors = [plain(one) for one in lost.get(node.instance_id, ())]
    if fault is not None or node.status == "Failure":
        level = BAD
    elif node.status in _CHANGING:
        level = CHANGING
    else:
        level = WARN if detectors or node.status != "Running" else GOOD
    return {
        "id": plain(node.instance_id),
        "host": plain(node.host or node.instance_id),
        "type": plain(node.instance_type),
        "status": plain(node.status),
        "message": plain(node.message),
        "level": level,
        "fault": "" if fault is None else plain(fault.fault or "fault"),
        "incident": "" if fault is None else plain(fault.id),
        "state": "" if fault is None else fault.state.value,
        "detectors": detectors,
        "role": "",
        "job": "",
        "ranks": "",
        **role,
    }
