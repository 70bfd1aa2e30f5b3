"""
Pod identity associations: roles for the pods of service accounts.

Source: EKS API reference, CreatePodIdentityAssociation; EKS user guide, pod-id-role and pod-id-assign-target-role, read
2026-11-23; check of the trust policy and its words: hashicorp/terraform-provider-aws 41483.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import RecordStore, now, paged
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.clusters import EksClusters

SERVICE = "pods.eks.amazonaws.com"


class PodIdentities:
    def __init__(self, *, clusters: EksClusters, client: ClientFactory) -> None:
        self.shelf = RecordStore(lambda key: errors.missing(f"No association found for id: {key[1]}."))
        self._clusters, self._client = clusters, client

    def create_pod_identity_association(
        self,
        *,
        clusterName: str,
        namespace: str,
        serviceAccount: str,
        roleArn: str,
        tags: dict[str, str] | None = None,
        clientRequestToken: str = "",  # noqa: ARG002 - namespace and account make a repetition visible
        **settings: Any,
    ) -> dict[str, Any]:
        self._clusters.check_role(roleArn)
        self._must_trust(roleArn)
        _check_settings(settings)
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            for (cluster, name), record in self.shelf.items():
                taken = (record.content["namespace"], record.content["serviceAccount"])
                if cluster == clusterName and taken == (namespace, serviceAccount):
                    raise errors.in_use(f"Association already exists: {name}")
            moment, name = now(), f"a-{secrets.token_hex(9)[:17]}"
            content = {
                "clusterName": clusterName,
                "namespace": namespace,
                "serviceAccount": serviceAccount,
                "roleArn": roleArn,
                "associationArn": self._clusters.arn("podidentityassociation", f"{clusterName}/{name}"),
                "associationId": name,
                "tags": dict(tags or {}),
                "createdAt": moment,
                "modifiedAt": moment,
                "disableSessionTags": False,
                **settings,
            }
            content.update(self._external_id(content))
            self.shelf.add((clusterName, name), content)
            return {"association": copy.deepcopy(content)}

    def describe_pod_identity_association(self, *, clusterName: str, associationId: str) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            return {"association": copy.deepcopy(self.shelf.get((clusterName, associationId)).content)}

    def list_pod_identity_associations(
        self,
        *,
        clusterName: str,
        namespace: str = "",
        serviceAccount: str = "",
        maxResults: int | None = None,
        nextToken: str | None = None,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            keys = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")
            found = [
                {key: record.content[key] for key in keys}
                for (cluster, _), record in self.shelf.items()
                if cluster == clusterName
                and namespace in ("", record.content["namespace"])
                and serviceAccount in ("", record.content["serviceAccount"])
            ]
        return paged("associations", found, maxResults, nextToken)

    def update_pod_identity_association(
        self,
        *,
        clusterName: str,
        associationId: str,
        clientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
        **changes: Any,
    ) -> dict[str, Any]:
        if "roleArn" in changes:
            self._clusters.check_role(changes["roleArn"])
            self._must_trust(changes["roleArn"])
        with self._clusters.lock:
            content = self.shelf.get((clusterName, associationId)).content
            changed = {**content, **changes}
            _check_settings(changed)
            content.update(changes, modifiedAt=now(), **self._external_id(changed))
            return {"association": copy.deepcopy(content)}

    def delete_pod_identity_association(self, *, clusterName: str, associationId: str) -> dict[str, Any]:
        with self._clusters.lock:
            content = self.shelf.get((clusterName, associationId)).content
            self.shelf.forget((clusterName, associationId))
            return {"association": copy.deepcopy(content)}

    def _must_trust(self, role: str) -> None:
        """Accept a role with a condition in its trust policy: it is judged for each pod."""
        document = self._client("iam").get_role(RoleName=role.rsplit("/", 1)[-1])["Role"]["AssumeRolePolicyDocument"]
        if not any(_names_the_service(statement) for statement in _listed(document.get("Statement", []))):
            raise errors.invalid_parameter("Trust policy of the role provided is invalid")

    def _external_id(self, content: Mapping[str, Any]) -> dict[str, str]:
        if not content.get("targetRoleArn"):
            return {}
        place = (self._clusters.region, self._clusters.account, content["clusterName"])
        return {"externalId": "/".join((*place, content["namespace"], content["serviceAccount"]))}


def _check_settings(settings: Mapping[str, Any]) -> None:
    if settings.get("policy") and not settings.get("disableSessionTags"):
        raise errors.invalid_parameter("disableSessionTags must be true for an association with a policy")


def _names_the_service(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service", [])) if isinstance(principal, Mapping) else [SERVICE]
    return statement.get("Effect") == "Allow" and SERVICE in services


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
