"""CloudFormation registry schemas, from the data files of ``cfn-lint``, whose import would take a second."""

import functools
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    name = _names().get(kind)
    if name is None:
        return None
    return Schema(type=kind, body=json.loads((_folder() / "schemas" / "resources" / f"{name}.json").read_text()))


@functools.cache
def iam_actions(service: str) -> frozenset[str]:
    """IAM actions of a service in lower case; empty for an unknown prefix."""
    return frozenset(_policies().get(service.lower(), {}).get("Actions", ()))


@functools.cache
def _policies() -> Mapping[str, Any]:
    return dict(json.loads((_folder() / "AdditionalSpecs" / "Policies.json").read_text()))


@functools.cache
def _names() -> Mapping[str, str]:
    # A type that one region alone has is found in the list of another: us-west-2 and us-east-1 have all but a few.
    found: dict[str, str] = {}
    for region in ("us-west-2", "us-east-1"):
        found |= json.loads((_folder() / "schemas" / "providers" / f"{region}.json").read_text())
    return found


@functools.cache
def _folder() -> Path:
    spec = importlib.util.find_spec("cfnlint")
    assert spec is not None, "cfn-lint is a dependency of this package"
    assert spec.submodule_search_locations is not None, "cfn-lint is a folder of modules"
    return Path(spec.submodule_search_locations[0]) / "data"
