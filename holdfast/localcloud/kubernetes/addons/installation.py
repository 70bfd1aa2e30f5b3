"""An add-on's objects in a cluster: applied as EKS applies them, looked at, and removed."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast.localcloud.kubernetes.addons.health import lacking, workloads
from holdfast_common import KubernetesError

MANAGER = "eks"
"""Who EKS is in managedFields: EKS user guide, kubernetes-field-management, read on 2026-11-23."""
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
    """Somebody else has set what the add-on would set."""


class Place(Protocol):
    """An API server, such as `KubernetesClient`, with the rights to make everything that an add-on has."""

    def get(self, path: str) -> dict[str, Any]: ...

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = False) -> dict[str, Any]: ...

    def delete(self, path: str) -> None: ...


def install(place: Place, objects: Sequence[Mapping[str, Any]], *, resolve_conflicts: str) -> None:
    """
    Make the objects, or make them what they should be.

    Args:
        place: The cluster.
        objects: Of one add-on.
        resolve_conflicts: OVERWRITE what others have set, PRESERVE it, or NONE: fail.

    Raises:
        ConflictError: with EKS's words, each object that others have changed in a line.
        KubernetesError: a refused object, or no answer.
    """
    force = resolve_conflicts == "OVERWRITE"
    conflicts = [f"{one['kind']} {one['metadata']['name']}" for one in objects if not _applied(place, one, force=force)]
    if conflicts and resolve_conflicts != "PRESERVE":
        raise ConflictError(
            "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts:\n"
            + "\n".join(conflicts)
        )


def is_well(place: Place, objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every pod that the objects ask for is there and ready. KubernetesError: it cannot be asked for."""
    try:
        return not any(lacking(place.get(_path(one))) for one in workloads(objects))
    except KubernetesError as error:
        if error.code == MISSING:  # somebody deleted it
            return False
        raise


def remove(place: Place, objects: Sequence[Mapping[str, Any]]) -> None:
    """Delete the objects, the last first. KubernetesError: it cannot be done."""
    for one in reversed(objects):
        place.delete(_path(one))


def _applied(place: Place, one: Mapping[str, Any], *, force: bool) -> bool:
    """Whether an object is what it should be; False where somebody else has set it otherwise."""
    try:
        place.apply(_path(one), one, manager=MANAGER, force=force)
    except KubernetesError as error:
        if error.code == CONFLICT:
            return False
        raise
    return True


def _path(one: Mapping[str, Any]) -> str:
    """An object's own address."""
    metadata = one["metadata"]
    return f"{PATHS[one['kind']].format(namespace=metadata.get('namespace', ''))}/{metadata['name']}"
