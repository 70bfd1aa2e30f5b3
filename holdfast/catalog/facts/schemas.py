"""CloudFormation registry schemas, and resource types by region."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.catalog.facts.packages import folder_of, of_cfn_lint

NEWER_TYPES = Path(__file__).with_name("newer_types")
"""Schemas of resource types that cfn-lint's copy of the registry lacks, each with its sources."""
_SAME_REGIONS = "AWS::SageMaker::Cluster"
"""Assumed: they are where this type is."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Schema of a resource type."""

    type: str
    body: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.body.get("properties", {})
        return found

    @property
    def attributes(self) -> frozenset[str]:
        """Attributes for Fn::GetAtt."""
        return frozenset(
            pointer.removeprefix("/properties/").replace("/", ".")
            for pointer in self.body.get("readOnlyProperties", ())
        )

    @property
    def reference(self) -> tuple[str, ...]:
        """Properties that Ref returns, joined by ``|``."""
        return tuple(pointer.removeprefix("/properties/") for pointer in self.body.get("primaryIdentifier", ()))

    def resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Resolve the ``$ref`` of a part."""
        for _ in range(10):
            pointer = node.get("$ref")
            if not isinstance(pointer, str) or not pointer.startswith("#/"):
                return node
            found: Any = self.body
            for part in pointer.removeprefix("#/").split("/"):
                found = found.get(part, {}) if isinstance(found, Mapping) else {}
            node = {**found, **{key: value for key, value in node.items() if key != "$ref"}}
        return node


@functools.cache
def schema_of(kind: str) -> Schema | None:
    """Schema of a resource type; None if the registry has none."""
    for region in listed_regions():
        name = types_in(region).get(kind)
        if name is not None:
            body = _newer_types()[kind] if name == kind else of_cfn_lint(f"schemas/resources/{name}.json")
            return Schema(type=kind, body=body)
    return None


@functools.cache
def listed_regions() -> tuple[str, ...]:
    """Regions whose resource types are known."""
    lists = (folder_of("cfnlint") / "data/schemas/providers").glob("*.json")
    return tuple(sorted(path.stem for path in lists if path.stem != "sam"))


@functools.cache
def types_in(region: str) -> Mapping[str, str]:
    """Resource types of a region and the names of their schemas, the same in all regions; empty if unknown."""
    if region not in listed_regions():
        return {}
    known = dict(of_cfn_lint(f"schemas/providers/{region}.json"))
    newer = {kind: kind for kind in _newer_types() if _SAME_REGIONS in known}
    return {**newer, **known}


@functools.cache
def _newer_types() -> Mapping[str, Mapping[str, Any]]:
    bodies = [json.loads(path.read_text()) for path in sorted(NEWER_TYPES.glob("*.json"))]
    return {body["typeName"]: body for body in bodies}
