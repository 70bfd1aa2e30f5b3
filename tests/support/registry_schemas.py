"""CloudFormation's resource schemas, as the pinned cfn-lint carries them, and those of types that it lacks."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cfnlint

from holdfast.catalog.facts import NEWER_TYPES

_DATA = Path(cfnlint.__file__).parent / "data" / "schemas"


@cache
def region_types(region: str) -> Mapping[str, str]:
    """The types that a region has, each with the name of its schema."""
    found: dict[str, str] = json.loads((_DATA / "providers" / f"{region}.json").read_text())
    return {**{kind: str(path) for kind, path in _newer().items()}, **found}


@cache
def _newer() -> Mapping[str, Path]:
    return {json.loads(path.read_text())["typeName"]: path for path in NEWER_TYPES.glob("*.json")}


def regions() -> list[str]:
    """All regions there is a list of."""
    return sorted(path.stem for path in (_DATA / "providers").glob("*-*.json"))


def placed_types() -> set[str]:
    """The instance types of HyperPod that cfn-lint places in a region."""
    listed = json.loads((_DATA / "extensions/aws_sagemaker_cluster/instancetype_enum.json").read_text())
    return {name for each in listed.values() if isinstance(each, dict) for name in each["enum"]}


@cache
def schema(type_name: str, region: str = "us-east-1") -> Mapping[str, Any]:
    """The schema of a type; KeyError where the region has not the type."""
    name = region_types(region)[type_name]
    found: dict[str, Any] = json.loads(Path(_DATA / "resources", name).with_suffix(".json").read_text())
    return found


def create_only(type_name: str, properties: Any, *, region: str = "us-east-1") -> Iterator[tuple[str, Any]]:
    """The properties of a resource that cannot change without replacing it, by path; those that are not set are left
    out. What is replaced only sometimes counts as well."""
    if type_name not in region_types(region):  # custom resources: another function makes another resource
        if "ServiceToken" in properties:
            yield "ServiceToken", properties["ServiceToken"]
        return
    found = schema(type_name, region)
    for kind in ("createOnlyProperties", "conditionalCreateOnlyProperties"):
        for pointer in found.get(kind, ()):
            path = pointer.removeprefix("/properties/")
            for value in _at(properties, path.split("/")):
                yield path, value


def _at(value: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield value
    elif path[0] == "*" and isinstance(value, list):
        for item in value:
            yield from _at(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
