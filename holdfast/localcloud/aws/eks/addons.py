"""Add-ons of EKS clusters: installed where Kubernetes runs and a stand-in exists, else recorded."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import hashlib
import re
from collections.abc import Callable
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import RecordStore, ServiceError, now, paged
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.addon_software import NO_REPLICAS, AddonSoftware
from holdfast.localcloud.aws.eks.clusters import EksClusters
from holdfast.localcloud.aws.eks.nodegroups import Nodegroups
from holdfast.localcloud.aws.eks.nodes import has_nodes, make_log_group
from holdfast_common import KubernetesClient

DEFAULT_VERSIONS = {
    "adot": "v0.117.0-eksbuild.1",
    "amazon-cloudwatch-observability": "v4.5.0-eksbuild.1",
    "amazon-sagemaker-hyperpod-inference": "v1.0.0-eksbuild.1",
    "amazon-sagemaker-hyperpod-observability": "v1.0.4-eksbuild.1",
    "amazon-sagemaker-hyperpod-taskgovernance": "v1.3.0-eksbuild.1",
    "amazon-sagemaker-hyperpod-training-operator": "v1.2.1-eksbuild.1",
    "aws-ebs-csi-driver": "v1.48.0-eksbuild.1",
    "aws-efs-csi-driver": "v2.1.10-eksbuild.1",
    "aws-fsx-csi-driver": "v1.7.0-eksbuild.1",
    "aws-guardduty-agent": "v1.10.0-eksbuild.2",
    "aws-mountpoint-s3-csi-driver": "v1.15.0-eksbuild.1",
    "cert-manager": "v1.18.2-eksbuild.1",
    "coredns": "v1.12.2-eksbuild.4",
    "eks-node-monitoring-agent": "v1.4.0-eksbuild.1",
    "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
    "external-dns": "v0.18.0-eksbuild.1",
    "kube-proxy": "v1.33.3-eksbuild.4",
    "kube-state-metrics": "v2.16.0-eksbuild.1",
    "metrics-server": "v0.8.0-eksbuild.1",
    "prometheus-node-exporter": "v1.9.1-eksbuild.2",
    "snapshot-controller": "v8.3.0-eksbuild.1",
    "vpc-cni": "v1.20.1-eksbuild.1",
}
"""
Names of the service (EKS user guide, "AWS add-ons" and "Community add-ons", and the HyperPod add-ons
named in awslabs/awsome-distributed-ai, 2026-07-23), with their versions.
"""

VERSION = re.compile(r"v\d+\.\d+\.\d+(-[a-z]+[.\d]*)?-eksbuild\.\d+")
NO_INLINE_IDENTITY = {"amazon-sagemaker-hyperpod-training-operator": (1, 2, 1)}
"""From this version on the add-on names no service account that could take an inline pod identity association
(awsome-distributed-ai issue 1075)."""


ON_EVERY_NODE = frozenset(
    {
        "aws-guardduty-agent",
        "eks-node-monitoring-agent",
        "eks-pod-identity-agent",
        "kube-proxy",
        "prometheus-node-exporter",
        "vpc-cni",
    }
)
"""Add-ons that are nothing but a DaemonSet: without nodes they want no pod, and so lack none."""

BUILT_ON = {"amazon-sagemaker-hyperpod-training-operator": "cert-manager"}
"""SageMaker developer guide, sagemaker-eks-operator-install: the certificates of its webhooks are cert-manager's."""

PRIVATE = ("broken", "inline", "settling", "started")
"""Of a record's content, for this service alone."""

LOG_GROUPS = {"amazon-cloudwatch-observability": ("application", "dataplane", "host", "performance")}
"""
Log groups of the agent, under /aws/containerinsights/CLUSTER, created if missing (CloudWatch user guide,
Container-Insights-reference and Container-Insights-setup-logs-FluentBit).
"""


class Addons:
    def __init__(
        self,
        *,
        clusters: EksClusters,
        nodegroups: Nodegroups,
        client: ClientFactory,
        kubernetes: Callable[[str], KubernetesClient | None] = lambda _: None,
    ) -> None:
        self.shelf = RecordStore(lambda key: errors.missing(f"No addon: {key[1]} found in cluster: {key[0]}"))
        self._clusters, self._nodegroups, self._client = clusters, nodegroups, client
        self._software = AddonSoftware(clusters=clusters, kubernetes=kubernetes)

    def create_addon(
        self,
        *,
        clusterName: str,
        addonName: str,
        addonVersion: str = "",
        tags: dict[str, str] | None = None,
        podIdentityAssociations: list[dict[str, str]] | None = None,
        resolveConflicts: str = "NONE",
        clientRequestToken: str = "",  # noqa: ARG002 - the name makes a repetition visible
        **settings: Any,
    ) -> dict[str, Any]:
        if resolveConflicts == "PRESERVE":  # eksctl-io/eksctl pull request 5880
            raise errors.invalid_parameter(
                "Resolve conflicts option preserve is not supported for operation CreateAddon"
            )
        if addonName not in DEFAULT_VERSIONS:
            raise errors.invalid_parameter(f"Addon {addonName} specified is not supported")
        version = _checked(addonName, addonVersion or DEFAULT_VERSIONS[addonName])
        _check_identities(addonName, version, podIdentityAssociations)
        self._check_roles(podIdentityAssociations, settings.get("serviceAccountRoleArn"))
        with self._clusters.lock:
            self._clusters.active(clusterName)
            if self.shelf.find((clusterName, addonName)) is not None:
                raise errors.in_use("Addon already exists.")
            moment = now()
            content = {
                "addonName": addonName,
                "clusterName": clusterName,
                "addonVersion": version,
                "addonArn": self._clusters.arn("addon", f"{clusterName}/{addonName}/{_id(clusterName, addonName)}"),
                "createdAt": moment,
                "modifiedAt": moment,
                "health": {"issues": []},
                "tags": dict(tags or {}),
                **({"inline": podIdentityAssociations} if podIdentityAssociations else {}),
                **settings,
            }
            self.shelf.add((clusterName, addonName), content)
        self._software.install(content, resolve_conflicts=resolveConflicts, failing_as="CREATE_FAILED")
        with self._clusters.lock:
            return {"addon": self._shown(clusterName, addonName)}

    def describe_addon(self, *, clusterName: str, addonName: str) -> dict[str, Any]:
        with self._clusters.lock:
            shown = self._shown(clusterName, addonName)
            content = self.shelf.get((clusterName, addonName)).content
        real = self._software.is_real(content) and not content.get("broken")
        if shown["status"] not in (("ACTIVE", "CREATING", "DEGRADED", "UPDATING") if real else ("DEGRADED",)):
            return {"addon": shown}
        self._start(content)
        with self._clusters.lock:
            return {"addon": self._shown(clusterName, addonName)}

    def list_addons(
        self, *, clusterName: str, maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._clusters.lock:
            names = sorted(name for (cluster, name), _ in self.shelf.items() if cluster == clusterName)
        return paged("addons", names, maxResults, nextToken)

    def update_addon(
        self,
        *,
        clusterName: str,
        addonName: str,
        addonVersion: str = "",
        podIdentityAssociations: list[dict[str, str]] | None = None,
        resolveConflicts: str = "NONE",
        clientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
        **settings: Any,
    ) -> dict[str, Any]:
        self._check_roles(podIdentityAssociations, settings.get("serviceAccountRoleArn"))
        with self._clusters.lock:
            record = self.shelf.get((clusterName, addonName))
            if record.busy:
                raise errors.in_use(f"Addon {addonName} cannot be updated as it is currently in {record.doing} state")
            version = _checked(addonName, addonVersion or record.content["addonVersion"])
            _check_identities(addonName, version, podIdentityAssociations)
            record.content |= {"addonVersion": version, "modifiedAt": now(), **settings}
            if podIdentityAssociations is not None:
                record.content["inline"] = podIdentityAssociations
            record.begin("UPDATING")
            content = record.content
            update = self._clusters.update("AddonUpdate", {"AddonVersion": version})
        self._software.install(content, resolve_conflicts=resolveConflicts, failing_as="UPDATE_FAILED")
        return {"update": update}

    def delete_addon(self, *, clusterName: str, addonName: str, preserve: bool = False) -> dict[str, Any]:
        with self._clusters.lock:
            content = self.shelf.get((clusterName, addonName)).content
        if not preserve:
            self._software.remove(content)
        with self._clusters.lock:
            self.shelf.get((clusterName, addonName)).begin("DELETING")
            return {"addon": self._shown(clusterName, addonName)}

    def _shown(self, cluster: str, name: str) -> dict[str, Any]:
        record = self.shelf.get((cluster, name))
        shown = copy.deepcopy(record.content)
        private = {key: shown.pop(key, None) for key in PRIVATE}
        inline = private["inline"] or []
        settled = private["broken"] or private["settling"] or ("ACTIVE" if private["started"] else "DEGRADED")
        if inline:
            path = f"{cluster}/a-{_id(cluster, name)[:17]}"
            shown["podIdentityAssociations"] = [self._clusters.arn("podidentityassociation", path) for _ in inline]
        return {**shown, "status": record.status(settled=settled)}

    def _start(self, content: dict[str, Any]) -> None:
        """Update an add-on's pods if their nodes and dependencies exist. Called without the lock."""
        cluster, name = content["clusterName"], content["addonName"]
        base = BUILT_ON.get(name)
        missing = base is not None and not self._is_started(cluster, base)
        there = name in ON_EVERY_NODE or has_nodes(self._client, cluster, own=self._nodegroups.are_desired(cluster))
        content["health"] = {"issues": [dict(NO_REPLICAS)] if missing or not there else []}
        content["started"] = there and not missing
        if content["started"]:
            self._software.look(content)
        if content["started"]:
            for group in LOG_GROUPS.get(name, ()):
                make_log_group(self._client, f"/aws/containerinsights/{cluster}/{group}")

    def _is_started(self, cluster: str, name: str) -> bool:
        try:
            return bool(self.describe_addon(clusterName=cluster, addonName=name)["addon"]["status"] == "ACTIVE")
        except ServiceError:
            return False

    def _check_roles(self, identities: list[dict[str, str]] | None, role: str | None) -> None:
        for arn in [*(identity["roleArn"] for identity in identities or []), *([role] if role else [])]:
            self._clusters.check_role(arn)


def _checked(name: str, version: str) -> str:
    if not VERSION.fullmatch(version):
        raise errors.invalid_parameter(f"Addon version specified is not supported: {name} {version}")
    return version


def _check_identities(name: str, version: str, identities: list[dict[str, str]] | None) -> None:
    since = NO_INLINE_IDENTITY.get(name)
    number = tuple(int(part) for part in version.lstrip("v").split("-")[0].split("."))
    if identities and since is not None and number >= since:
        raise errors.invalid_parameter(
            f"Pod identity associations are not supported for addon {name} version {version}. "
            "Create a pod identity association of its own instead."
        )


def _id(cluster: str, name: str) -> str:
    digits = hashlib.sha256(f"{cluster}/{name}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
