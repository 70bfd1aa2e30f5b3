"""Decisions of a deployment: resources, steps, order. Pure."""

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.deployment.store import Resource
from holdfast.localcloud.aws.cloudformation.resources import handler_for
from holdfast.localcloud.aws.cloudformation.template import KNOWN_AFTER_APPLY, TemplateScope, dependencies, references

ATTRIBUTES = ("Metadata", "DeletionPolicy", "UpdatePolicy", "UpdateReplacePolicy", "CreationPolicy")


class ResourceStep(Enum):
    NOTHING = "nothing"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"


def desired(document: Mapping[str, Any], scope: TemplateScope) -> dict[str, dict[str, Any]]:
    """Return the resources whose condition holds."""
    return {
        name: definition
        for name, definition in document["Resources"].items()
        if "Condition" not in definition or scope.holds(definition["Condition"])
    }


def needs(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, set[str]]:
    everything, chosen = dependencies(document), set(names)
    return {name: everything[name] & chosen for name in chosen}


def reverse(resources: Iterable[Resource]) -> dict[str, set[str]]:
    listed = list(resources)
    return {
        entry.logical_id: {other.logical_id for other in listed if entry.logical_id in other.needs} - {entry.logical_id}
        for entry in listed
    }


def step(
    current: Resource | None, resource_type: str, properties: Mapping[str, Any], sent: Mapping[str, Any]
) -> ResourceStep:
    if current is None or not current.physical_id:
        return ResourceStep.CREATE
    if current.type != resource_type or current.status == "CREATE_FAILED":
        return ResourceStep.REPLACE
    if registry.replaced_by(resource_type, current.properties, properties):
        return ResourceStep.REPLACE
    if current.sent == sent and not current.status.endswith("_FAILED"):
        return ResourceStep.NOTHING
    return ResourceStep.UPDATE


def name_clash(current: Resource, properties: Mapping[str, Any]) -> str:
    """Return the name that the new resource would share with the replaced one, or ""."""
    key = handler_for(current.type).custom_name
    same = bool(key) and key in properties and properties[key] == current.properties.get(key)
    return str(properties[key]) if same else ""


def with_tags(
    resource_type: str, properties: Mapping[str, Any], stack_tags: Mapping[str, str], system_tags: Mapping[str, str]
) -> dict[str, Any]:
    key = registry.tag_property(resource_type)
    if not key:
        return dict(properties)
    tagging = registry.schema(resource_type).get("tagging") or {}
    system = system_tags if tagging.get("cloudFormationSystemTags", True) else {}
    own = properties.get(key) or []
    pairs = dict(own) if isinstance(own, Mapping) else {tag["Key"]: tag["Value"] for tag in own}
    merged = {**stack_tags, **pairs, **system}
    rule = registry.schema(resource_type).get("properties", {}).get(key, {})
    as_map = isinstance(own, Mapping) or rule.get("type") == "object"
    return {**properties, key: merged if as_map else [{"Key": k, "Value": v} for k, v in merged.items()]}


def retained(resource: Resource, policy: str, *, creating: bool, except_on_create: bool = False) -> bool:
    """Return True if a resource outlives its stack; ``creating``: in the operation that created or imported it."""
    if creating and resource.imported:
        return True
    value = resource.definition.get(policy, "Delete")
    if value == "Retain":
        return not (creating and except_on_create)
    return value == "RetainExceptOnCreate" and not creating


def change(
    current: Resource | None,
    definition: Mapping[str, Any],
    logical_id: str,
    properties: Mapping[str, Any],
    sent: Mapping[str, Any],
    *,
    imported: bool = False,
) -> dict[str, Any] | None:
    """Return one entry of a change set; None if nothing happens to the resource."""
    entry: dict[str, Any] = {"LogicalResourceId": logical_id, "ResourceType": definition["Type"]}
    if current is None:
        return _entry({**entry, "Action": "Import" if imported else "Add", "Scope": [], "Details": []})
    entry["PhysicalResourceId"] = current.physical_id
    decided = step(current, definition["Type"], properties, sent)
    attributes = [key for key in ATTRIBUTES if current.definition.get(key) != definition.get(key)]
    if decided is ResourceStep.NOTHING and not attributes:
        return None
    if decided is ResourceStep.CREATE:
        return _entry({**entry, "Action": "Add", "Scope": [], "Details": []})
    details = [*_property_details(current, properties, definition["Type"]), *_tag_details(current, sent)]
    details += [
        {
            "Target": {"Attribute": key, "RequiresRecreation": "Never"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for key in attributes
    ]
    scope = list(dict.fromkeys(detail["Target"]["Attribute"] for detail in details))
    uncertain = any(
        detail["Target"]["RequiresRecreation"] == "Always" and detail["Evaluation"] == "Dynamic" for detail in details
    )
    replacement = "False" if decided is not ResourceStep.REPLACE else "Conditional" if uncertain else "True"
    return _entry({**entry, "Action": "Modify", "Replacement": replacement, "Scope": scope, "Details": details})


def removal(resource: Resource) -> dict[str, Any]:
    """Return the change set's entry for a removed resource."""
    policy = "Retain" if retained(resource, "DeletionPolicy", creating=False) else "Delete"
    return _entry(
        {
            "Action": "Remove",
            "LogicalResourceId": resource.logical_id,
            "PhysicalResourceId": resource.physical_id,
            "ResourceType": resource.type,
            "Scope": [],
            "Details": [],
            "PolicyAction": policy,
        }
    )


def _entry(resource_change: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "Resource", "ResourceChange": resource_change}


def _property_details(current: Resource, properties: Mapping[str, Any], resource_type: str) -> list[dict[str, Any]]:
    tags = registry.tag_property(resource_type)
    replacing = {path.split("/")[0] for path in registry.replaced_by(resource_type, current.properties, properties)}
    details = []
    for name in sorted(current.properties.keys() | properties.keys()):
        before, after = current.properties.get(name), properties.get(name)
        if before == after or name == tags:
            continue
        dynamic = KNOWN_AFTER_APPLY in str(after)
        kind = "Add" if before is None else "Remove" if after is None else "Modify"
        target: dict[str, Any] = {
            "Attribute": "Properties",
            "Name": name,
            "Path": f"/Properties/{name}",
            "AttributeChangeType": kind,
            "RequiresRecreation": "Always" if name in replacing else "Never",
        }
        target |= {"BeforeValue": _shown(before)} if before is not None else {}
        target |= {"AfterValue": _shown(after)} if after is not None else {}
        details.append(
            {
                "Target": target,
                "Evaluation": "Dynamic" if dynamic else "Static",
                "ChangeSource": "ResourceReference" if dynamic else "DirectModification",
            }
        )
    return details


def _tag_details(current: Resource, sent: Mapping[str, Any]) -> list[dict[str, Any]]:
    key = registry.tag_property(current.type)
    if not key or current.sent.get(key) == sent.get(key):
        return []
    return [
        {
            "Target": {"Attribute": "Tags", "RequiresRecreation": "Never"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
    ]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def attributes_used(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return every (resource, attribute) that the template names literally."""
    everything = [document["Resources"], document.get("Outputs", {})]
    return {(name, key) for name, key in references(everything) if key and key != "*" and name in document["Resources"]}


def parameters_of_outputs(document: Mapping[str, Any]) -> set[str]:
    parts = [document.get("Outputs", {}), document.get("Conditions", {})]
    return {name for name, key in references(parts) if not key and name in document.get("Parameters", {})}
