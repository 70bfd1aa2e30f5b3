"""
Random changes of environment files by their schema: every setting is reached, also one that is added tomorrow.

Names of things that exist elsewhere (ARNs, blocks, scripts) are drawn from plausible ones more often than from the
schema's patterns, since a rule refuses most of those.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SCHEMA: Mapping[str, Any] = json.loads((ROOT / "docs" / "environment.schema.json").read_text())
SCRIPT = "scripts/own.sh"
"""A file that is beside the environment."""
TYPES = ("ml.p5.48xlarge", "ml.c5.xlarge", "ml.g6.12xlarge", "ml.trn2.48xlarge", "ml.m5.2xlarge", "ml.p6-b200.48xlarge")
MOST_ENTRIES = 3


@dataclass(frozen=True, kw_only=True)
class Place:
    """A setting that may be changed, written or not; a list itself where ``name`` is None."""

    path: tuple[str | int, ...]
    name: str | None
    schema: Mapping[str, Any]
    required: bool = False


def changed(document: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The document with one setting set, removed, or an entry of a list added or removed."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> dict[str, Any]:
        place = draw(st.sampled_from(list(places(document, SCHEMA))))
        found = copy.deepcopy(dict(document))
        target: Any = found
        for part in place.path:
            target = target[part]
        if place.name is None:
            if target and draw(st.booleans()):
                target.pop(draw(st.integers(0, len(target) - 1)))
            else:
                target.append(draw(values("", place.schema, document)))
        elif place.name in target and not place.required and draw(st.integers(0, 3)) == 0:
            del target[place.name]
        elif (value := draw(values(place.name, place.schema, document))) is None:
            target.pop(place.name, None)
        else:
            target[place.name] = value
        return found

    return draw_one()


def places(node: Any, schema: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Place]:
    schema = resolved(schema, node)
    if isinstance(node, dict) and "properties" in schema:
        for name, inner in schema["properties"].items():
            yield Place(path=path, name=name, schema=inner, required=name in schema.get("required", ()))
            if name in node:
                yield from places(node[name], inner, (*path, name))
    elif isinstance(node, list) and "items" in schema:
        yield Place(path=path, name=None, schema=schema["items"])
        for index, entry in enumerate(node):
            yield from places(entry, schema["items"], (*path, index))


def resolved(schema: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    """The schema without references, and of alternatives the one with the node's shape."""
    if "$ref" in schema:
        found: Mapping[str, Any] = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
        return found
    shape = "properties" if isinstance(node, dict) else "items"
    for one in schema.get("anyOf", ()):
        if shape in (inner := resolved(one, node)):
            return inner
    return schema


def values(name: str, schema: Mapping[str, Any], document: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the schema allows, and None where the setting may be left out."""
    if "$ref" in schema:
        return objects(resolved(schema, None), document)
    if "anyOf" in schema:
        return st.one_of([values(name, each, document) for each in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(TYPES) if name.startswith("instance_type") else st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        least, most = schema.get("minItems", 0), min(MOST_ENTRIES, schema.get("maxItems", MOST_ENTRIES))
        return st.lists(values(name, schema["items"], document), min_size=least, max_size=max(least, most))
    if kind == "object":
        ((key, value),) = schema["patternProperties"].items()
        return st.dictionaries(text(key), text(value["pattern"]), max_size=2)
    if kind in ("integer", "number"):
        return numbers(schema)
    if kind == "string":
        return strings(name, schema, document)
    return st.booleans() if kind == "boolean" else st.none()


def objects(schema: Mapping[str, Any], document: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    required = schema.get("required", ())
    own = {name: values(name, inner, document) for name, inner in schema["properties"].items() if name in required}
    return st.fixed_dictionaries(own)


def numbers(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    least = schema.get("minimum", 1)
    most = schema.get("maximum", 100_000)
    if schema["type"] == "number":
        return st.sampled_from([0.1, 0.5, 1.0])
    return st.one_of(st.sampled_from([least, most, 1200, 2400, 12000]), st.integers(least, min(most, least + 8)))


def strings(name: str, schema: Mapping[str, Any], document: Mapping[str, Any]) -> st.SearchStrategy[str]:
    by_pattern = text(schema["pattern"]) if "pattern" in schema else st.text(min_size=1, max_size=9)
    known = plausible(str(document["account"]), str(document["region"])).get(name)
    return by_pattern if known is None else st.one_of(st.sampled_from(known), st.sampled_from(known), by_pattern)


def text(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True).filter(lambda one: len(one) <= 60 and one.isascii())


def plausible(account: str, region: str) -> dict[str, list[str]]:
    key = f"arn:aws:kms:{region}:{account}:key/12345678-1234-1234-1234-123456789012"
    roles = [f"arn:aws:iam::{account}:role/Own"]
    return {
        "availability_zone": [f"{region}a", f"{region}b"],
        "additional_availability_zones": [f"{region}b", f"{region}c"],
        "control_plane_availability_zone": [f"{region}b"],
        "cidr": ["10.1.0.0/16", "10.1.0.0/20", "10.1.0.0/24", "172.31.0.0/22"],
        "vpc_cidr": ["10.0.0.0/16"],
        "subnet_cidr": ["10.0.0.0/20"],
        "public_access_cidrs": ["203.0.113.0/24"],
        "execution_role_arn": roles,
        "cluster_role_arn": roles,
        "admin_role_arns": roles,
        "permissions_boundary": [f"arn:aws:iam::{account}:policy/Boundary"],
        "training_plan_arn": [f"arn:aws:sagemaker:{region}:{account}:training-plan/own"],
        "secret_arn": [f"arn:aws:secretsmanager:{region}:{account}:secret:own-AbCdEf"],
        "kms_key": ["create", "aws-managed", "alias/own", key],
        "kms_key_arn": [key],
        "volume_kms_key": [key],
        "root_volume_kms_key": [key],
        "schedule_expression": ["cron(00 03 ? * SUN *)"],
        "scripts": [SCRIPT],
        "checks": [SCRIPT],
        "endpoint": ["db.example.com"],
    }
