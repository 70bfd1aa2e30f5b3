"""Schemas of resource types by region."""

from collections.abc import Mapping
from typing import Any

from holdfast.catalog.facts import has_type, schema_of

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
    found = schema_of(resource_type) if not region or has_type(resource_type, region) else None
    return {} if found is None else found.body


def available(resource_type: str, region: str) -> bool:
    if resource_type in NO_SCHEMA or resource_type.startswith("Custom::"):
        return True
    return bool(has_type(resource_type, region))
