"""
Decisions of the control loop. Pure: no clock, no I/O.

The service's records are the memory: a Pending instance is to be brought into service, so a restarted control plane
continues by deciding again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from holdfast.localcloud.hyperpod.model import (
    ATTACHING,
    CHECKING,
    COMPUTE,
    CONTROLLER_NOT_READY,
    CREATING,
    DELETING,
    FAILED,
    FAILURE,
    IN_SERVICE,
    MAX_ATTEMPTS,
    PENDING,
    ROLLING_BACK,
    RUNNING,
    SHUTTING_DOWN,
    SYSTEM_UPDATING,
    UPDATING,
    Cluster,
    Instance,
    cluster_failed,
)

REST_S, LONGEST_REST_S = 10.0, 60.0
"""Continuous provisioning has no last attempt: the pause before the next one doubles. Assumed: AWS documents none."""

SHARE = 0.1
"""Of a cluster's instances that may be repaired within an hour when several seem to be broken at once; at least one."""

GATHER_S = 5.0
"""Time after the first failure of a creation or update, in which further failures are added."""


class Health(Enum):
    ABSENT = "absent"
    """Never started here, or everything of it is gone: the machine was restarted."""
    ALIVE = "alive"
    DEAD = "dead"
    FROZEN = "frozen"
    SILENT = "silent"
    """It runs, and its network is unreachable."""


@dataclass(frozen=True, kw_only=True)
class InstanceAction:
    instance_id: str


@dataclass(frozen=True, kw_only=True)
class Prepare(InstanceAction):
    """Bring an instance into service: boot, Slurm, lifecycle scripts."""

    afresh: bool = False
    """True if its remains are unusable and destroyed first."""


@dataclass(frozen=True, kw_only=True)
class Replace(InstanceAction):
    cause: str
    lost: bool = False
    """True if it was found dead or frozen, False if requested."""


@dataclass(frozen=True, kw_only=True)
class Reboot(InstanceAction):
    cause: str
    unreachable: bool = False
    """True if it was found unreachable, False if requested."""


class Update(InstanceAction):
    """Give an instance a new root volume."""


class Detach(InstanceAction):
    """Take an instance out of its group; the service attaches it to another one."""


@dataclass(frozen=True, kw_only=True)
class Check(InstanceAction):
    checks: tuple[str, ...]


class Remove(InstanceAction): ...


@dataclass(frozen=True, kw_only=True)
class MarkFailed(InstanceAction):
    message: str


@dataclass(frozen=True, kw_only=True)
class HoldBack(InstanceAction):
    """Leave an instance that seems broken: with so many at once the detector may be wrong."""

    message: str


@dataclass(frozen=True, kw_only=True)
class SetStatus:
    status: str
    message: str = ""


Action = Prepare | Replace | Reboot | Update | Detach | Check | Remove | HoldBack | MarkFailed | SetStatus


@dataclass(frozen=True, kw_only=True)
class Observation:
    cluster: Cluster
    health: Mapping[str, Health] = field(default_factory=dict)
    """By instance id. Default: absent."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """Instance id -> what API callers requested: replace, reboot, delete, update, detach, or check and its names."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Instance id -> replace, reboot, unresponsive, as nodes of Slurm or of Kubernetes show."""
    busy: frozenset[str] = frozenset()
    """Instances with work in progress; nothing is decided about them."""
    settled: frozenset[str] = frozenset()
    """Instances (by id) that were members when the cluster was last in service."""
    attempts: Mapping[str, int] = field(default_factory=dict)
    """Private address -> automatic replacements in a row."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Instance id -> reason of its failure."""
    failed_for_s: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> seconds since it was seen to have failed."""
    scripts_failed: frozenset[str] = frozenset()
    """Those among them whose lifecycle script failed."""
    rollback_message: str = ""
    judged_lately: int = 0
    """Repairs of suspects within the last hour, see `accused`."""
    share: float = SHARE
    slurm_settled: bool = True
    """True if Slurm has the configuration of the membership, or cannot have one."""


def decide(observed: Observation) -> list[Action]:
    """Return actions for one cluster, instances first, then its status."""
    if observed.cluster.status == ROLLING_BACK:
        return _roll_back(observed)
    if settled := _for_continuous(observed):
        return [settled]
    actions: list[Action] = []
    holds: list[Action] = []
    held = _held(observed)
    for instance in observed.cluster.instances:
        if instance.instance_id in held:
            seen = f"{len(accused(observed))} of {len(observed.cluster.instances)} instances seem to be broken at once"
            advice = "automatic replacement is paused; check the machine, or call BatchReplaceClusterNodes"
            holds.append(HoldBack(instance_id=instance.instance_id, message=f"{seen}: {advice}"))
            continue
        action = None if instance.instance_id in observed.busy else _for_instance(observed, instance)
        if action:
            actions.append(action)
    return [*holds, *(actions or _for_cluster(observed))]


def accused(observed: Observation) -> list[str]:
    """Return instances that seem broken, seen from outside or by Slurm, though their init process runs."""
    if observed.cluster.node_recovery != "Automatic":
        return []
    return [
        one.instance_id
        for one in observed.cluster.instances
        if one.status in (RUNNING, CHECKING)
        and one.instance_id not in observed.busy
        and observed.requests.get(one.instance_id, "").partition(" ")[0] in ("", "check")
        and (
            observed.health.get(one.instance_id) in (Health.FROZEN, Health.SILENT)
            or (not observed.cluster.kubernetes and observed.marks.get(one.instance_id) == "unresponsive")
        )
    ]


def _held(observed: Observation) -> frozenset[str]:
    """Limit repairs of several suspects to a share per hour; one alone is always repaired."""
    found = accused(observed)
    if len(found) <= 1:
        return frozenset()
    allowed = max(1, int(observed.share * len(observed.cluster.instances)))
    return frozenset(found[max(0, allowed - observed.judged_lately) :])


def _for_continuous(observed: Observation) -> SetStatus | None:
    """
    In service when controller and login nodes are; Failed if a controller's script failed.

    Source: developer guide, "Continuous provisioning", "Controller failure handling".
    """
    cluster = observed.cluster
    if not cluster.continuous or cluster.status not in (CREATING, UPDATING):
        return None
    first = [one for one in cluster.instances if cluster.group(one.group).slurm_role not in ("", COMPUTE)]
    for one in first:
        if cluster.status == CREATING and one.status == FAILURE and one.instance_id in observed.scripts_failed:
            return SetStatus(status=FAILED, message=failure_message(observed, failed=[one]))
    if all(one.status == RUNNING for one in first):
        return SetStatus(status=IN_SERVICE)
    return None


def _for_instance(observed: Observation, instance: Instance) -> Action | None:
    cluster, name = observed.cluster, instance.instance_id
    request = observed.requests.get(name, "")
    if cluster.status == DELETING or request == "delete":
        return Remove(instance_id=name)
    if cluster.status == FAILED:
        return None
    if request == "replace":
        return Replace(instance_id=name, cause="BatchReplaceClusterNodes was called")
    if request == "reboot":
        return Reboot(instance_id=name, cause="BatchRebootClusterNodes was called")
    if request == "update":
        return Update(instance_id=name)
    if request == "detach":
        return Detach(instance_id=name)
    health = observed.health.get(name, Health.ABSENT)
    if instance.status in (PENDING, SYSTEM_UPDATING, ATTACHING):
        return Prepare(instance_id=name, afresh=health not in (Health.ABSENT, Health.ALIVE))
    if instance.status in (RUNNING, CHECKING):
        verb, *checks = request.split() or [""]
        if health is Health.ALIVE and (verb == "check" or instance.status == CHECKING):
            # One that was begun before it was in service is its group's.
            desired = tuple(checks) or cluster.group(instance.group).deep_checks
            return _marked(observed, instance) or Check(instance_id=name, checks=desired)
        return _for_running(observed, instance, health=health)
    if instance.status == FAILURE:
        return _for_failed(observed, instance, health=health)
    if instance.status == SHUTTING_DOWN:
        return Replace(instance_id=name, cause="its replacement was interrupted", lost=True)
    return None


_SEEN = {
    Health.DEAD: "its init process exited",
    Health.FROZEN: "no response: its processes are stopped",
    Health.SILENT: "its network is unreachable",
}


_ASKED_ON_EKS = {
    "replace": "its Kubernetes node is labelled UnschedulablePendingReplacement",
    "reboot": "its Kubernetes node is labelled UnschedulablePendingReboot",
}


def _for_running(observed: Observation, instance: Instance, *, health: Health) -> Action | None:
    cluster, name = observed.cluster, instance.instance_id
    if health is Health.ABSENT:
        return Prepare(instance_id=name)
    if health is not Health.ALIVE:
        seen = _SEEN[health]
        if cluster.node_recovery == "Automatic":
            return Replace(instance_id=name, cause=seen, lost=True)
        advice = "node recovery is None: call BatchReplaceClusterNodes"
        return MarkFailed(instance_id=name, message=f"{seen}; {advice}")
    return _marked(observed, instance)


def _marked(observed: Observation, instance: Instance) -> Action | None:
    cluster, name = observed.cluster, instance.instance_id
    mark = observed.marks.get(name)
    if cluster.kubernetes and cluster.node_recovery != "Automatic":
        return None  # "If automatic node recovery is enabled": the developer guide, node labels
    if mark in ("replace", "reboot"):
        cause = _ASKED_ON_EKS[mark] if cluster.kubernetes else f"its Slurm node has the reason Action:{mark.title()}"
        made = Replace if mark == "replace" else Reboot
        return made(instance_id=name, cause=cause)
    if mark == "unresponsive" and cluster.node_recovery == "Automatic":
        return Reboot(instance_id=name, cause="Slurm gets no response from it", unreachable=True)
    return None


def _for_failed(observed: Observation, instance: Instance, *, health: Health) -> Action | None:
    """Retry a failed replacement, at most MAX_ATTEMPTS times, or without end with continuous provisioning."""
    tried = observed.attempts.get(instance.address, 0)
    if observed.cluster.continuous:
        if observed.failed_for_s.get(instance.instance_id, 0.0) < _rest_s(tried):
            return None
    elif not tried or tried >= MAX_ATTEMPTS or observed.cluster.node_recovery != "Automatic":
        return None
    why = observed.failures.get(instance.instance_id, "the replacement failed")
    return Replace(instance_id=instance.instance_id, cause=why, lost=health is Health.DEAD)


def _rest_s(tried: int) -> float:
    return 0.0 if tried < MAX_ATTEMPTS else min(REST_S * 2 ** (tried - MAX_ATTEMPTS), LONGEST_REST_S)


def _for_cluster(observed: Observation) -> list[Action]:
    cluster, instances = observed.cluster, observed.cluster.instances
    if cluster.status == DELETING:
        return [] if instances or observed.busy else [SetStatus(status="Deleted")]
    if cluster.status not in (CREATING, UPDATING) or cluster.continuous:
        return []
    failed = [one for one in instances if one.status == FAILURE and one.instance_id not in observed.settled]
    working = bool(observed.busy) or any(one.status in (PENDING, CHECKING) for one in instances)
    failing_for_s = max((observed.failed_for_s.get(one.instance_id, 0.0) for one in failed), default=0.0)
    if failed and (not working or failing_for_s >= GATHER_S):
        message = failure_message(observed, failed=failed)
        return [SetStatus(status=FAILED if cluster.status == CREATING else ROLLING_BACK, message=message)]
    asked = any(observed.requests.get(one.instance_id) for one in instances)
    if working or failed or asked or not observed.slurm_settled:
        return []
    return [SetStatus(status=IN_SERVICE)]


def _roll_back(observed: Observation) -> list[Action]:
    cluster = observed.cluster
    new = [one for one in cluster.instances if one.instance_id not in observed.settled]
    if new:
        free = [one.instance_id for one in new if one.instance_id not in observed.busy]
        return [Remove(instance_id=name) for name in free]
    if observed.busy or not observed.slurm_settled:
        return []
    message = observed.rollback_message or "the update failed and was rolled back"
    return [SetStatus(status=IN_SERVICE, message=message)]


def failure_message(observed: Observation, *, failed: Iterable[Instance]) -> str:
    failed = list(failed)
    if any(observed.failures.get(one.instance_id) == CONTROLLER_NOT_READY for one in failed):
        return CONTROLLER_NOT_READY
    first = min(failed, key=lambda one: one.instance_id)
    return cluster_failed(first, reason=observed.failures.get(first.instance_id, "failed"))
