"""
Schemas of cfn-lint without alternatives, where a plain form says the same.

cfn-lint 1.58 gives up on a ``oneOf`` in which a function stands (``cfnlint.jsonschema._keywords.oneOf``: "Cannot
determine"), and nothing in it is judged: the orchestrator and the storage of a HyperPod cluster hold ``Fn::GetAtt``.
"""

from collections.abc import Iterable
from typing import Any


def judge_in_depth(kinds: Iterable[str], *, region: str) -> None:
    """Replace alternatives that differ by their one property, in cfn-lint's schemas of these types."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError

    for kind in kinds:
        try:
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, kind).schema
        except ResourceNotFoundError:
            continue
        for part in schema.get("definitions", {}).values():
            choices = part.get("oneOf")
            if choices and all(_is_one_property(each) for each in choices):
                del part["oneOf"]
                properties = {name: inner for each in choices for name, inner in each["properties"].items()}
                part.update(properties=properties, additionalProperties=False, requiredXor=list(properties))


def _is_one_property(choice: Any) -> bool:
    """True for a closed object with one property, which may be required."""
    return (
        choice.keys() <= {"additionalProperties", "properties", "required", "type"}
        and choice.get("additionalProperties") is False
        and len(choice.get("properties", {})) == 1
    )
