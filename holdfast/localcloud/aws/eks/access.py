"""
Access entries and access policies of EKS clusters.

Source: EKS user guide, access-policies and creating-access-entries, read 2026-11-23; EKS API reference. Valid
principals, user names and groups are in ``principals``.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import hashlib
from typing import Any

from botocore.exceptions import ClientError

from holdfast.catalog import access_policies
from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import RecordStore, now, paged
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.clusters import EksClusters
from holdfast.localcloud.aws.eks.principals import (
    FOR_NODES,
    TYPES,
    check_groups,
    check_principal,
    check_username,
    default_username,
    groups_of,
    invalid_principal,
)

API_MODES = ("API", "API_AND_CONFIG_MAP")
ADMINISTRATOR = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


class AccessEntries:
    def __init__(self, *, clusters: EksClusters, client: ClientFactory) -> None:
        self.entries = RecordStore(
            lambda key: errors.missing(f"The specified principalArn could not be found. You specified: {key[1]}")
        )
        self._clusters, self._client = clusters, client

    def admit_creator(self, cluster: str, principal: str) -> None:
        """Make the creator of a cluster its administrator; the caller holds the lock."""
        if self.entries.find((cluster, principal)) is None:
            self._add(cluster, principal, kind="STANDARD", groups=[], username="", tags={})
            self._associate(cluster, principal, ADMINISTRATOR, {"type": "cluster"})

    def list_access_policies(self, *, maxResults: int | None = None, nextToken: str | None = None) -> dict[str, Any]:
        listed = [{"name": policy.name, "arn": policy.arn} for policy in access_policies().values()]
        return paged("accessPolicies", listed, maxResults, nextToken)

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
        with self._clusters.lock:
            self._allows_entries(clusterName)
        check_principal(principalArn, kind=type, account=self._clusters.account)
        check_username(username)
        check_groups(kubernetesGroups or [])
        self._must_exist(principalArn)
        with self._clusters.lock:
            self._allows_entries(clusterName)
            if self.entries.find((clusterName, principalArn)) is not None:
                raise errors.in_use("The specified access entry resource is already in use on this cluster.")
            self._add(
                clusterName,
                principalArn,
                kind=type,
                groups=kubernetesGroups or [],
                username=username,
                tags=tags or {},
            )
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
            check_username(changes.get("username", ""))
            check_groups(changes.get("kubernetesGroups", []))
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
        policy = access_policies().get(policyArn)
        if not policyArn.startswith("arn:aws:eks::aws:cluster-access-policy/"):
            raise errors.invalid_parameter(f"The policyArn parameter format is not valid: {policyArn}")
        if policy is None:
            raise errors.missing(f"The specified policyArn could not be found. You specified: {policyArn}")
        if policy.service_linked_only:
            raise errors.invalid_parameter(f"{policy.name} cannot be used with customer-managed roles")
        if (accessScope.get("type") == "namespace") != bool(accessScope.get("namespaces")):
            raise errors.invalid_parameter("namespaces are required for scope type namespace, and for no other")
        with self._clusters.lock:
            kind = self.entries.get((clusterName, principalArn)).content["type"]
            if kind in FOR_NODES:
                raise errors.invalid_request(f"Access policies cannot be associated with type {kind}")
            associated = self._associate(clusterName, principalArn, policyArn, accessScope)
            where = {"clusterName": clusterName, "principalArn": principalArn}
            return {**where, "associatedAccessPolicy": dict(associated)}

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

    def _add(
        self, cluster: str, principal: str, *, kind: str, groups: list[str], username: str, tags: dict[str, str]
    ) -> None:
        account, path = principal.split(":")[4], principal.split(":")[5]
        name = f"{path.partition('/')[0]}/{account}/{path.rpartition('/')[2]}"
        digest = hashlib.sha256(principal.encode()).hexdigest()[:32]
        moment = now()
        content = {
            "clusterName": cluster,
            "principalArn": principal,
            "kubernetesGroups": groups_of(kind, groups),
            "accessEntryArn": self._clusters.arn("access-entry", f"{cluster}/{name}/{digest}"),
            "createdAt": moment,
            "modifiedAt": moment,
            "username": username or default_username(principal, kind=kind),
            "type": kind,
            "tags": dict(tags),
            "policies": {},
        }
        self.entries.add((cluster, principal), content)

    def _associate(self, cluster: str, principal: str, policy: str, scope: dict[str, Any]) -> dict[str, Any]:
        associated, moment = self.entries.get((cluster, principal)).content["policies"], now()
        since = associated[policy]["associatedAt"] if policy in associated else moment
        shown = {"type": scope["type"], "namespaces": list(scope.get("namespaces", []))}
        associated[policy] = {
            "policyArn": policy,
            "accessScope": shown,
            "associatedAt": since,
            "modifiedAt": moment,
        }
        return dict(associated[policy])

    def _must_exist(self, principal: str) -> None:
        """Reject a role or user of this account that IAM does not have."""
        account, resource = principal.split(":")[4:6]
        kind, _, name = resource.partition("/")
        if account != self._clusters.account or kind == "root":
            return
        iam, name = self._client("iam"), name.rpartition("/")[2]
        try:
            found = iam.get_role(RoleName=name)["Role"] if kind == "role" else iam.get_user(UserName=name)["User"]
        except ClientError:
            found = {"Arn": ""}
        if found["Arn"] != principal:
            raise invalid_principal()

    def _allows_entries(self, name: str) -> None:
        cluster = self._clusters.shelf.get(name)
        if cluster.content["accessConfig"]["authenticationMode"] not in API_MODES:
            raise errors.invalid_request(
                "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation."
            )

    def _shown_entry(self, cluster: str, principal: str) -> dict[str, Any]:
        content = copy.deepcopy(self.entries.get((cluster, principal)).content)
        del content["policies"]
        return content
