"""
Access entries of one cluster: Kubernetes user and access policies of a principal.

Answers of EKS are cached for a moment: changes take seconds on AWS too (EKS user guide, creating-access-entries), and
the API server caches reviews for longer. Users, uid and extra fields as in kubernetes-sigs/aws-iam-authenticator,
pkg/server/server.go at 81b1dab (2026-07-14).
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from holdfast.catalog import access_policies
from holdfast.localcloud.kubernetes.access.authorization import Association, Scope
from holdfast.localcloud.kubernetes.access.identity import Identity

FRESH_S = 2.0
MOST_KEPT = 1024
UID = "aws-iam-authenticator:"
"""Prefix of the uid of users with a token: a uid cannot be impersonated."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    principal_arn: str
    username: str
    """With what is filled in at log-in in double braces."""
    groups: tuple[str, ...]
    associations: tuple[Association, ...]


@dataclass(frozen=True, kw_only=True)
class User:
    username: str
    groups: tuple[str, ...]
    uid: str
    extra: dict[str, list[str]]


class Entries:
    """Access entries by principal. Thread-safe."""

    def __init__(self, *, cluster_name: str, eks: Any, clock: Callable[[], float]) -> None:
        self._cluster, self._eks, self._clock = cluster_name, eks, clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Entry | None]] = {}

    def find(self, canonical_arn: str) -> Entry | None:
        """Return a principal's entry; by name, since STS omits a role's path. Raises: ClientError, BotoCoreError."""
        with self._lock:
            until, known = self._kept.get(canonical_arn, (0.0, None))
        if self._clock() < until:
            return known
        head, _, name = canonical_arn.partition(":role/")
        found = self._ask(canonical_arn)
        if found is None and name and "/" not in name:
            paths = [arn for arn in self._principals() if arn.startswith(f"{head}:role/") and arn.endswith(f"/{name}")]
            found = self._ask(paths[0]) if paths else None
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[canonical_arn] = (self._clock() + FRESH_S, found)
        return found

    def _ask(self, principal: str) -> Entry | None:
        where = {"clusterName": self._cluster, "principalArn": principal}
        try:
            described = self._eks.describe_access_entry(**where)["accessEntry"]
            policies = list(self._associated(where))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("ResourceNotFoundException", "InvalidRequestException"):
                return None
            raise
        return Entry(
            principal_arn=principal,
            username=described["username"],
            groups=tuple(described["kubernetesGroups"]),
            associations=tuple(policies),
        )

    def _associated(self, where: dict[str, str]) -> Iterator[Association]:
        pages = self._eks.get_paginator("list_associated_access_policies").paginate(**where)
        for page in pages:
            for each in page["associatedAccessPolicies"]:
                policy, scope = access_policies().get(each["policyArn"]), each["accessScope"]
                if policy is not None:
                    names = None if scope["type"] == "cluster" else tuple(scope["namespaces"])
                    yield Association(policy=policy, scope=Scope(namespaces=names))

    def _principals(self) -> list[str]:
        try:
            pages = self._eks.get_paginator("list_access_entries").paginate(clusterName=self._cluster)
            return [arn for page in pages for arn in page["accessEntries"]]
        except ClientError as error:
            if error.response["Error"]["Code"] in ("ResourceNotFoundException", "InvalidRequestException"):
                return []
            raise


def user_of(entry: Entry, identity: Identity) -> User | None:
    """Return a principal's Kubernetes user; None for an EC2 instance: nodes authenticate by certificates here."""
    fields = {
        "arn": identity.arn,
        "canonicalArn": identity.canonical_arn,
        "sessionName": identity.session_name,
        "accessKeyId": identity.access_key_id,
        "principalId": identity.principal_id,
        "sigs.k8s.io/aws-iam-authenticator/principalId": identity.principal_id,
    }
    username = _filled(entry.username, identity)
    if not username or "{{EC2PrivateDNSName}}" in username:
        return None
    return User(
        username=username,
        groups=tuple(_filled(group, identity) for group in entry.groups),
        uid=f"{UID}{identity.account}:{identity.principal_id}",
        extra={key: [value] for key, value in fields.items()},
    )


def _filled(text: str, identity: Identity) -> str:
    known = {
        "{{AccountID}}": identity.account,
        "{{SessionName}}": identity.session_name.replace("@", "-"),
        "{{SessionNameRaw}}": identity.session_name,
        "{{AccessKeyID}}": identity.access_key_id,
    }
    for variable, value in known.items():
        text = text.replace(variable, value)
    return text
