"""
Controllers of custom kinds: pods whose service account has a role that may write the kind, as every operator's chart
has it. Roles for all API groups are administrators' and do not count. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.cli.kubernetes.manifests import Object, Resource
from holdfast.cli.kubernetes.workloads import pod_record

_BUILT_IN = frozenset({"apps", "autoscaling", "batch", "extensions", "policy"})
_WRITES = frozenset({"*", "update", "patch"})
_Account = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Rights:
    roles: tuple[Object, ...]
    """ClusterRoles and Roles."""
    bindings: tuple[Object, ...]
    """ClusterRoleBindings and RoleBindings."""
    pods: tuple[Object, ...]


def is_defined(resource: Resource) -> bool:
    group = resource.group_version.partition("/")[0] if "/" in resource.group_version else ""
    return bool(group) and group not in _BUILT_IN and not group.endswith(".k8s.io")


def unserved(resource: Resource, rights: Rights) -> str | None:
    """Return the reason why no controller serves a custom kind; None if one runs."""
    group = resource.group_version.partition("/")[0]
    named = {_name(one) for one in rights.roles if _writes(one, group=group, plural=resource.plural)}
    accounts = {account for one in rights.bindings if _named_by(one) in named for account in _accounts(one)}
    pods = [one for one in rights.pods if _account_of(one) in accounts]
    if any(_is_ready(one) for one in pods):
        return None
    if not pods:
        return "none is installed"
    record = pod_record(pods[0])
    return f"pod {record.namespace}/{record.name} is not ready: {record.why or record.phase}"


def _writes(role: Object, *, group: str, plural: str) -> bool:
    return any(
        group in (rule.get("apiGroups") or ())
        and not {plural, f"{plural}/status", "*", "*/status"}.isdisjoint(rule.get("resources") or ())
        and not _WRITES.isdisjoint(rule.get("verbs") or ())
        for rule in role.get("rules") or ()
    )


def _name(role: Object) -> tuple[str, str]:
    return role["metadata"].get("namespace") or "", role["metadata"]["name"]


def _named_by(binding: Object) -> tuple[str, str]:
    is_cluster_role = binding["roleRef"].get("kind") == "ClusterRole"
    return "" if is_cluster_role else binding["metadata"].get("namespace", ""), binding["roleRef"]["name"]


def _accounts(binding: Object) -> Iterable[_Account]:
    own = binding["metadata"].get("namespace", "")
    for one in binding.get("subjects") or ():
        if one.get("kind") == "ServiceAccount":
            yield one.get("namespace") or own, one["name"]


def _account_of(pod: Object) -> _Account:
    return pod["metadata"].get("namespace", ""), pod["spec"].get("serviceAccountName") or "default"


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
