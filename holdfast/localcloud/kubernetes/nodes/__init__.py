"""Nodes of a cluster from virtual instances: files, size, labels, Nodes."""

from holdfast.localcloud.kubernetes.nodes.files import kernel_files, member_files, pod_network
from holdfast.localcloud.kubernetes.nodes.labels import (
    ASKED_BY_LABEL,
    CHECK_FAILED,
    CHECK_TAINT,
    DEEP_CHECK_LABEL,
    HEALTH_LABEL,
    IN_PROGRESS,
    PASSED,
    PENDING_REPLACEMENT,
    SCHEDULABLE,
    UNSCHEDULABLE,
    Member,
    Taint,
    instance_of,
    labels,
    node_name,
)
from holdfast.localcloud.kubernetes.nodes.machines import Parts, last_complaint, parts, start_services
from holdfast.localcloud.kubernetes.nodes.roster import Roster, health, is_ready
from holdfast.localcloud.kubernetes.nodes.size import extended_resources, kube_reserved, make_numa_nodes, most_pods

__all__ = [
    "ASKED_BY_LABEL",
    "CHECK_FAILED",
    "CHECK_TAINT",
    "DEEP_CHECK_LABEL",
    "HEALTH_LABEL",
    "IN_PROGRESS",
    "PASSED",
    "PENDING_REPLACEMENT",
    "SCHEDULABLE",
    "UNSCHEDULABLE",
    "Member",
    "Parts",
    "Roster",
    "Taint",
    "extended_resources",
    "health",
    "instance_of",
    "is_ready",
    "kernel_files",
    "kube_reserved",
    "labels",
    "last_complaint",
    "make_numa_nodes",
    "member_files",
    "most_pods",
    "node_name",
    "parts",
    "pod_network",
    "start_services",
]
