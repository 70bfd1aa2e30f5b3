"""
HyperPod's labels, taints and names of Nodes. Pure.

Sources: SageMaker developer guide, "Resilience-related Kubernetes labels by SageMaker HyperPod" and "Set up custom
Kubernetes labels and taints" (2026-11); the keys that hyp 3.12.0 reads (constants of its hyperpod module); the provider
id as awslabs/awsome-distributed-ai shows nodes. Read on 2026-11-23.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

HEALTH_LABEL = "sagemaker.amazonaws.com/node-health-status"
SCHEDULABLE, UNSCHEDULABLE = "Schedulable", "Unschedulable"
ASKED_BY_LABEL: Mapping[str, str] = {
    "UnschedulablePendingReboot": "reboot",
    "UnschedulablePendingReplacement": "replace",
}
"""Value of the health label -> what HyperPod does with the instance where node recovery is Automatic."""

DEEP_CHECK_LABEL = "sagemaker.amazonaws.com/deep-health-check-status"
IN_PROGRESS, PASSED, CHECK_FAILED = "InProgress", "Passed", "Failed"
PENDING_REPLACEMENT = "UnschedulablePendingReplacement"
"""Of the health label, after a deep health check that failed."""
CHECK_TAINT: Mapping[str, str] = {"key": HEALTH_LABEL, "value": UNSCHEDULABLE, "effect": "NoSchedule"}
"""Keeps pods away while deep health checks run."""

INSTANCE_GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
CLUSTER_LABEL = "sagemaker.amazonaws.com/cluster-name"
_PREFIX = "hyperpod-"


@dataclass(frozen=True, kw_only=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}"


@dataclass(frozen=True, kw_only=True)
class Member:
    instance_id: str
    address: str
    cluster: str
    cluster_id: str
    group: str
    instance_type: str
    region: str
    zone: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the group's KubernetesConfig. Default: none."""
    taints: tuple[Taint, ...] = ()
    has_volume: bool = False
    """Its group asks for a volume beside the root's. Default: False."""

    @property
    def name(self) -> str:
        return node_name(self.instance_id)

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.zone}/sagemaker/cluster/hyperpod-{self.cluster_id}-{self.instance_id}"


def node_name(instance_id: str) -> str:
    return _PREFIX + instance_id


def instance_of(name: str) -> str:
    """Return the instance id of a Node's name; empty for other nodes."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX + "i-") else ""


def labels(member: Member) -> dict[str, str]:
    return {
        **member.labels,
        CLUSTER_LABEL: member.cluster,
        "sagemaker.amazonaws.com/compute-type": "hyperpod",
        INSTANCE_GROUP_LABEL: member.group,
        HEALTH_LABEL: SCHEDULABLE,
        "node.kubernetes.io/instance-type": member.instance_type,
        "beta.kubernetes.io/instance-type": member.instance_type,
        "topology.kubernetes.io/region": member.region,
        "topology.kubernetes.io/zone": member.zone,
    }
