"""
Names that a change set would take, and resources that have them already.

Sources: CloudFormation user guide, "Validate stack deployments" and "Import AWS resources into a CloudFormation stack
automatically"; the words of a clash are those in aws-cloudformation/rain, pull request 744.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.deployment import DeploymentTarget, Stack, Surroundings, desired
from holdfast.localcloud.aws.cloudformation.resources import handler_for

KEPT = frozenset({"Retain", "RetainExceptOnCreate"})


def taken(surroundings: Surroundings, stack: Stack, target: DeploymentTarget) -> dict[str, str]:
    """Return the new resources, by logical id, whose custom names existing resources have."""
    found = {}
    scope = surroundings.scope(stack, target, stack.resources, foreseeing=True)
    for logical_id, definition in desired(target.document, scope).items():
        name = _custom_name(definition)
        if not name or logical_id in stack.resources:
            continue
        context = surroundings.context(stack, logical_id)
        if handler_for(definition["Type"]).existing(context, name) is not None:
            found[logical_id] = name
    return found


def importable(surroundings: Surroundings, target: DeploymentTarget, names: Mapping[str, str]) -> frozenset[str]:
    """Return those of ``taken`` that no stack has and that outlive theirs."""
    with surroundings.store.lock:
        stacks = [stack for stack in surroundings.store.stacks.values() if stack.alive]
        owned = {(entry.type, entry.physical_id) for stack in stacks for entry in stack.resources.values()}
    resources = target.document["Resources"]
    return frozenset(
        logical_id
        for logical_id, name in names.items()
        if resources[logical_id].get("DeletionPolicy") in KEPT and (resources[logical_id]["Type"], name) not in owned
    )


def clashes(target: DeploymentTarget, names: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield what DescribeEvents shows of ``taken``."""
    for logical_id, name in names.items():
        kind = target.document["Resources"][logical_id]["Type"]
        yield {
            "LogicalResourceId": logical_id,
            "ResourceType": kind,
            "ValidationName": "NAME_CONFLICT_VALIDATION",
            "ValidationStatusReason": f"Resource of type '{kind}' with identifier '{name}' already exists.",
            "ValidationPath": f"/Resources/{logical_id}",
        }


def _custom_name(definition: Mapping[str, Any]) -> str:
    """Return the static custom name of a resource if that is its primary identifier, otherwise ""."""
    kind = definition["Type"]
    key = handler_for(kind).custom_name
    if not key or not registry.foreseeable(kind) or registry.paths(kind, "primaryIdentifier") != [key]:
        return ""
    value = (definition.get("Properties") or {}).get(key)
    return value if isinstance(value, str) else ""
