"""Software of an EKS add-on in a real cluster: create, check and remove its objects."""

import datetime
from collections.abc import Callable
from typing import Any

from holdfast.localcloud.aws.common import now
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.clusters import EksClusters
from holdfast.localcloud.kubernetes.addons import (
    ConflictError,
    Facts,
    install,
    is_well,
    objects,
    remove,
    stand_in,
)
from holdfast_common import KubernetesClient, KubernetesError

NO_REPLICAS = {
    "code": "InsufficientNumberOfReplicas",
    "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
}
"""As reported in aws/containers-roadmap issue 2328. EKS keeps such an add-on DEGRADED until there are nodes."""

SETTLES_WITHIN = datetime.timedelta(minutes=2)
"""For so long an add-on whose pods find nodes is CREATING or UPDATING, not DEGRADED. Assumed; EKS takes longer."""


class AddonSoftware:
    """
    Software of the add-ons of one account and region. Methods write into a record's content: "health", "broken" (final
    status), "started" and "settling" (interim status).

    Callers do not hold the clusters' lock: Kubernetes may be slow.
    """

    def __init__(self, *, clusters: EksClusters, kubernetes: Callable[[str], KubernetesClient | None]) -> None:
        self._clusters, self._kubernetes = clusters, kubernetes

    def is_real(self, content: dict[str, Any]) -> bool:
        return bool(stand_in(content["addonName"])) and self._kubernetes(content["clusterName"]) is not None

    def install(self, content: dict[str, Any], *, resolve_conflicts: str, failing_as: str) -> None:
        """Create the add-on's objects; on failure its status is ``failing_as``."""
        place = self._kubernetes(content["clusterName"])
        if place is None:
            return
        content["broken"], content["health"] = "", {"issues": []}
        try:
            install(place, self._objects(content), resolve_conflicts=resolve_conflicts)
        except KubernetesError as error:
            code = "AdmissionRequestDenied" if error.code else "ClusterUnreachable"
            content["broken"], content["health"] = failing_as, _issue(code, str(error))
        except ConflictError as error:
            content["broken"], content["health"] = failing_as, _issue("ConfigurationConflict", str(error))

    def look(self, content: dict[str, Any]) -> None:
        place = self._kubernetes(content["clusterName"])
        content["settling"] = ""
        if place is None or not stand_in(content["addonName"]):
            return
        try:
            if is_well(place, self._objects(content)):
                return
            issue = _issue(**NO_REPLICAS)
        except KubernetesError as error:
            issue = _issue("ClusterUnreachable", str(error))
        content["started"] = False
        if now() - content["modifiedAt"] < SETTLES_WITHIN:
            content["settling"] = "CREATING" if content["modifiedAt"] == content["createdAt"] else "UPDATING"
        else:
            content["health"] = issue

    def remove(self, content: dict[str, Any]) -> None:
        """Delete the add-on's objects. Raise ServiceError if that fails."""
        place = self._kubernetes(content["clusterName"])
        if place is None:
            return
        try:
            remove(place, self._objects(content))
        except KubernetesError as error:
            raise errors.server(f"The objects of addon {content['addonName']} were not deleted: {error}") from None

    def _objects(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        with self._clusters.lock:
            cluster = self._clusters.shelf.get(content["clusterName"]).content
        services = cluster["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
        facts = Facts(region=self._clusters.region, version=content["addonVersion"], services=services)
        return objects(content["addonName"], facts)


def _issue(code: str, message: str) -> dict[str, Any]:
    return {"issues": [{"code": code, "message": message}]}
