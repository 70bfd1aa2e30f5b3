"""Policies of a template: statements of roles, keys and buckets, with their paths."""

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.validation.cloudformation import UNRESOLVED, Node, Resource, Text
from holdfast.validation.model import App

ROLE = "AWS::IAM::Role"
POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")


@dataclass(frozen=True, kw_only=True)
class Grant:
    path: str
    effect: str
    """``Allow`` or ``Deny``; empty where it is not known."""
    actions: tuple[str, ...]
    """Patterns in lower case."""
    all_but: bool
    """Whether the actions are those of NotAction."""
    resources: tuple[str, ...]
    """With gaps for unknown parts; empty without any."""
    node: Node
    conditions: Mapping[str, object]
    """By operator; empty without any."""
    sure: bool = True
    """Whether all of its actions are known."""

    def names(self, action: str) -> bool:
        hit = any(fnmatch.fnmatchcase(action.lower(), pattern) for pattern in self.actions)
        return hit != self.all_but


def grants_in(document: Node) -> list[Grant]:
    """Statements of a policy document; unreadable ones are left out."""
    statement = document.get("Statement")
    entries = [statement] if isinstance(statement.value, Mapping) else statement.items() or []
    return [_grant(entry) for entry in entries if isinstance(entry.value, Mapping)]


def reads_document(document: Node) -> bool:
    statement = document.get("Statement")
    entries = [statement] if isinstance(statement.value, Mapping) else statement.items()
    return entries is not None and all(isinstance(entry.value, Mapping) for entry in entries)


def documents_of(app: App, role: Resource) -> list[Node]:
    """Policy documents of a role in the app: inline, separate, and its own managed ones."""
    properties = app.node(role)
    found = [entry.get("PolicyDocument") for entry in properties.get("Policies").items() or ()]
    return [*found, *(app.node(policy).get("PolicyDocument") for policy in policies_of(app, role))]


def policies_of(app: App, role: Resource) -> list[Resource]:
    values = app.values
    found = [
        *values.linked(POLICIES, ["Roles"], role).found,
        *values.linked(["AWS::IAM::RolePolicy"], ["RoleName"], role).found,
    ]
    for entry in app.node(role).get("ManagedPolicyArns").items() or ():
        own = entry.resource("AWS::IAM::ManagedPolicy")
        found += [own] if own is not None and own not in found else []
    return found


def grants_of(app: App, role: Resource) -> list[Grant]:
    return [each for document in documents_of(app, role) for each in grants_in(document)]


def managed_names(app: App, role: Resource) -> list[tuple[str, str]] | None:
    """AWS managed policies of a role with their paths; None if it has unreadable ones."""
    entries = app.node(role).get("ManagedPolicyArns").items()
    if entries is None:
        return None
    found = []
    for entry in entries:
        if entry.resource("AWS::IAM::ManagedPolicy") is not None:
            continue
        if not isinstance(entry.value, str) or ":iam::aws:policy/" not in entry.value:
            return None
        found.append((entry.path, entry.value.partition("policy/")[2]))
    return found


def reads_all(app: App, role: Resource) -> bool:
    """True if nothing else can be attached to a role: no macro, no policy with an unknown role."""
    linked = app.values.linked(POLICIES, ["Roles"], role)
    single = app.values.linked(["AWS::IAM::RolePolicy"], ["RoleName"], role)
    known = all(each.effect and each.sure for each in grants_of(app, role))
    read = all(reads_document(document) for document in documents_of(app, role))
    return app.complete and linked.complete and single.complete and known and read


def role_of(node: Node) -> Resource | None:
    return node.resource(ROLE)


def principals(grant: Grant, kind: str) -> list[Node]:
    """Principals of a kind (``Service``, ``AWS``, ``Federated``)."""
    return _entries(grant.node.get("Principal", kind))


def resources_of(grant: Grant) -> list[Node]:
    return _entries(grant.node.get("Resource"))


def roles_of_groups(app: App) -> Iterator[tuple[Resource, Node, Resource]]:
    """Groups with an execution role of the app: cluster, group, role."""
    for cluster, properties in app.each("AWS::SageMaker::Cluster"):
        for kind in ("InstanceGroups", "RestrictedInstanceGroups"):
            for group in properties.get(kind).items() or ():
                role = role_of(group.get("ExecutionRole"))
                if role is not None:
                    yield cluster, group, role


def _grant(node: Node) -> Grant:
    all_but = node.get("NotAction").present
    actions = node.get("NotAction" if all_but else "Action")
    conditions = node.get("Condition").value
    texts = actions.strings()
    effect = node.get("Effect").text()
    return Grant(
        path=node.path,
        effect=effect if isinstance(effect, str) else "",
        actions=() if texts is UNRESOLVED else tuple(text.lower() for text in texts),
        all_but=all_but,
        resources=tuple(_resource(entry.value) for entry in _entries(node.get("Resource"))),
        node=node,
        conditions=conditions if isinstance(conditions, Mapping) else {},
        sure=texts is not UNRESOLVED,
    )


def _entries(node: Node) -> list[Node]:
    return (node.items() or []) if isinstance(node.value, list) else [node] if node.present else []


def _resource(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Text):
        return value.with_gaps()
    return "${...}"
