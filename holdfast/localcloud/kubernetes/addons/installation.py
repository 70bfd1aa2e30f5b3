"""Objects of an add-on in a cluster: apply as EKS does, check, delete."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.localcloud.kubernetes.addons.health import lacking, workloads
from holdfast_common import KubernetesClient, KubernetesError

MANAGER = "eks"
"""EKS in managedFields: EKS user guide, kubernetes-field-management, read on 2026-11-23."""
PATHS = {
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
}
CONFLICT, MISSING = 409, 404


class ConflictError(Exception):
    """Another manager has set a field of the add-on."""


def install(place: KubernetesClient, objects: Sequence[Mapping[str, Any]], *, resolve_conflicts: str) -> None:
    """
    Create or update the objects of one add-on.

    Args:
        resolve_conflicts: OVERWRITE other managers' fields, PRESERVE them, or NONE: fail.

    Raises:
        ConflictError, KubernetesError: EKS's message, one conflicting object a line; a refusal or no answer.
    """
    force = resolve_conflicts == "OVERWRITE"
    conflicts = [f"{one['kind']} {one['metadata']['name']}" for one in objects if not _applied(place, one, force=force)]
    if conflicts and resolve_conflicts != "PRESERVE":
        raise ConflictError(
            "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts:\n"
            + "\n".join(conflicts)
        )


def is_well(place: KubernetesClient, objects: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if all pods of the objects are ready. Raises: KubernetesError."""
    try:
        return not any(lacking(place.get(_path(one))) for one in workloads(objects))
    except KubernetesError as error:
        if error.code == MISSING:
            return False
        raise


def remove(place: KubernetesClient, objects: Sequence[Mapping[str, Any]]) -> None:
    """Delete the objects in reverse order. Raises: KubernetesError."""
    for one in reversed(objects):
        place.delete(_path(one))


def _applied(place: KubernetesClient, one: Mapping[str, Any], *, force: bool) -> bool:
    try:
        place.apply(_path(one), one, manager=MANAGER, force=force)
    except KubernetesError as error:
        if error.code == CONFLICT:
            return False
        raise
    return True


def _path(one: Mapping[str, Any]) -> str:
    metadata = one["metadata"]
    return f"{PATHS[one['kind']].format(namespace=metadata.get('namespace', ''))}/{metadata['name']}"
