"""Schemas of resource types by region, read from the files of cfn-lint, which is never imported."""

import importlib.util
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

HOME_REGIONS = ("us-west-2", "us-east-1")
"""Regions in which a type is looked up if none is given: names and schemas are the same everywhere."""

CUSTOM: Mapping[str, Any] = {
    "typeName": "AWS::CloudFormation::CustomResource",
    "properties": {"ServiceToken": {"type": "string"}, "ServiceTimeout": {"type": "integer"}},
    "required": ["ServiceToken"],
}
"""Custom resources take any other property (template reference, AWS::CloudFormation::CustomResource)."""

NO_SCHEMA = frozenset({"AWS::CDK::Metadata"})
"""Not in the registry; CloudFormation takes any properties of it."""


def schema(resource_type: str, region: str = "") -> Mapping[str, Any]:
    if resource_type.startswith("Custom::"):
        return CUSTOM
    for place in (region,) if region else HOME_REGIONS:
        digest = _types(place).get(resource_type)
        if digest:
            return _read(digest)
    return {}


def available(resource_type: str, region: str) -> bool:
    if resource_type in NO_SCHEMA or resource_type.startswith("Custom::"):
        return True
    return resource_type in _types(region)


@lru_cache
def _types(region: str) -> Mapping[str, str]:
    listed = _folder() / "providers" / f"{region}.json"
    return json.loads(listed.read_text()) if listed.is_file() else {}


@lru_cache
def _read(digest: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_folder() / "resources" / f"{digest}.json").read_text())
    return found


@lru_cache
def _folder() -> Path:
    found = importlib.util.find_spec("cfnlint")
    if found is None or found.origin is None:
        raise RuntimeError("the embedded CloudFormation reads its schemas from the package cfn-lint; install it")
    return Path(found.origin).parent / "data" / "schemas"
