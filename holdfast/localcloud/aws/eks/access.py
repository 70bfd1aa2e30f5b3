"""Who may use an EKS cluster: access entries for principals, and pod identity associations for service accounts."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import hashlib
import secrets
from typing import Any

from holdfast.localcloud.aws.common import Record, Shelf, now, paged
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.clusters import Clusters

TYPES = ("STANDARD", "EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
FOR_NODES = frozenset(TYPES) - {"STANDARD", "EC2"}
"""Entries of these types take neither groups nor policies."""

API_MODES = ("API", "API_AND_CONFIG_MAP")


class Access:
    """The operations on access entries and pod identity associations."""

    def __init__(self, *, clusters: Clusters) -> None:
        self.entries = Shelf(
            lambda key: errors.missing(f"The specified principalArn could not be found. You specified: {key[1]}")
        )
        self.identities = Shelf(lambda key: errors.missing(f"No association found for id: {key[1]}."))
        self._clusters = clusters

    def create_access_entry(
        self,
        *,
        clusterName: str,
        principalArn: str,
        type: str = "STANDARD",  # noqa: A002 - the API's name
        kubernetesGroups: list[str] | None = None,
        username: str = "",
        tags: dict[str, str] | None = None,
        clientRequestToken: str = "",  # noqa: ARG002 - the principal makes a repetition visible
    ) -> dict[str, Any]:
        if type not in TYPES:
            raise errors.invalid_parameter(f"The type {type} is not one of {', '.join(TYPES)}")
        if type in FOR_NODES and (kubernetesGroups or username):
            raise errors.invalid_parameter(f"kubernetesGroups and username cannot be set for type {type}")
        account = self._clusters.account
        if principalArn.startswith(f"arn:aws:iam::{account}:role/"):  # those of others cannot be looked up
            self._clusters.check_role(principalArn)
        with self._clusters.lock:
            self._allows_entries(clusterName)
            if self.entries.find((clusterName, principalArn)) is not None:
                raise errors.in_use("The specified access entry resource is already in use on this cluster.")
            moment, name = now(), principalArn.rsplit("/", 1)[-1]
            path = f"{clusterName}/role/{account}/{name}/{hashlib.sha256(principalArn.encode()).hexdigest()[:32]}"
            content = {
                "clusterName": clusterName,
                "principalArn": principalArn,
                "kubernetesGroups": ["system:nodes"] if type in FOR_NODES else list(kubernetesGroups or []),
                "accessEntryArn": self._clusters.arn("access-entry", path),
                "createdAt": moment,
                "modifiedAt": moment,
                "username": username or ("system:node:{{SessionName}}" if type in FOR_NODES else principalArn),
                "type": type,
                "tags": dict(tags or {}),
                "policies": {},
            }
            self.entries.add((clusterName, principalArn), content)
            return {"accessEntry": self._shown_entry(clusterName, principalArn)}

    def describe_access_entry(self, *, clusterName: str, principalArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            return {"accessEntry": self._shown_entry(clusterName, principalArn)}

    def list_access_entries(
        self,
        *,
        clusterName: str,
        associatedPolicyArn: str = "",
        maxResults: int | None = None,
        nextToken: str | None = None,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            self._allows_entries(clusterName)
            found = [
                principal
                for (cluster, principal), record in self.entries.items()
                if cluster == clusterName
                and (not associatedPolicyArn or associatedPolicyArn in record.content["policies"])
            ]
        return paged("accessEntries", found, maxResults, nextToken)

    def update_access_entry(
        self,
        *,
        clusterName: str,
        principalArn: str,
        clientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
        **changes: Any,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            content = self.entries.get((clusterName, principalArn)).content
            if content["type"] in FOR_NODES:
                raise errors.invalid_parameter(f"An access entry of type {content['type']} cannot be changed")
            content.update(changes, modifiedAt=now())
            return {"accessEntry": self._shown_entry(clusterName, principalArn)}

    def delete_access_entry(self, *, clusterName: str, principalArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            self.entries.get((clusterName, principalArn))
            self.entries.forget((clusterName, principalArn))
        return {}

    def associate_access_policy(
        self, *, clusterName: str, principalArn: str, policyArn: str, accessScope: dict[str, Any]
    ) -> dict[str, Any]:
        if not policyArn.startswith("arn:aws:eks::aws:cluster-access-policy/"):
            raise errors.invalid_parameter(f"The policyArn parameter format is not valid: {policyArn}")
        with self._clusters.lock:
            content = self.entries.get((clusterName, principalArn)).content
            if content["type"] in FOR_NODES:
                raise errors.invalid_request(f"Access policies cannot be associated with type {content['type']}")
            moment = now()
            policy = {"policyArn": policyArn, "accessScope": accessScope, "associatedAt": moment, "modifiedAt": moment}
            content["policies"][policyArn] = policy
            where = {"clusterName": clusterName, "principalArn": principalArn}
            return {**where, "associatedAccessPolicy": dict(policy)}

    def disassociate_access_policy(self, *, clusterName: str, principalArn: str, policyArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            if self.entries.get((clusterName, principalArn)).content["policies"].pop(policyArn, None) is None:
                raise errors.missing(f"The policyArn could not be found on the access entry: {policyArn}")
        return {}

    def list_associated_access_policies(
        self, *, clusterName: str, principalArn: str, maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._clusters.lock:
            found = copy.deepcopy(list(self.entries.get((clusterName, principalArn)).content["policies"].values()))
        where = {"clusterName": clusterName, "principalArn": principalArn}
        return {**where, **paged("associatedAccessPolicies", found, maxResults, nextToken)}

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
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            for (cluster, name), record in self.identities.items():
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
            self.identities.add((clusterName, name), content)
            return {"association": copy.deepcopy(content)}

    def describe_pod_identity_association(self, *, clusterName: str, associationId: str) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(clusterName)
            return {"association": copy.deepcopy(self.identities.get((clusterName, associationId)).content)}

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
                for (cluster, _), record in self.identities.items()
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
        with self._clusters.lock:
            content = self.identities.get((clusterName, associationId)).content
            content.update(changes, modifiedAt=now())
            return {"association": copy.deepcopy(content)}

    def delete_pod_identity_association(self, *, clusterName: str, associationId: str) -> dict[str, Any]:
        with self._clusters.lock:
            content = self.identities.get((clusterName, associationId)).content
            self.identities.forget((clusterName, associationId))
            return {"association": copy.deepcopy(content)}

    def _allows_entries(self, name: str) -> Record:
        cluster = self._clusters.shelf.get(name)
        if cluster.content["accessConfig"]["authenticationMode"] not in API_MODES:
            raise errors.invalid_request(
                "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation."
            )
        return cluster

    def _shown_entry(self, cluster: str, principal: str) -> dict[str, Any]:
        content = copy.deepcopy(self.entries.get((cluster, principal)).content)
        del content["policies"]
        return content
