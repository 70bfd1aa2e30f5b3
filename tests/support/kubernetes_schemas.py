"""The schemas of Kubernetes 1.31 to 1.36, and what of a manifest a server of one of them would not take.

They are those of `kubernetes-validate` (made from each release's OpenAPI), in which unknown fields are refused.
"""

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator

MINORS = tuple(f"1.{minor}" for minor in range(31, 37))
"""What HyperPod and EKS offer, less 1.30."""


@functools.cache
def definitions(minor: str) -> Mapping[str, Any]:
    """Every type of a release by its name, such as `io.k8s.api.batch.v1.JobSpec`."""
    folder = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema"
    content: Mapping[str, Any] = json.loads(
        (folder / f"v{minor}.0-local-strict" / "_definitions.json").read_text(encoding="utf-8")
    )["$defs"]
    return content


@functools.cache
def kinds(minor: str) -> Mapping[tuple[str, str], str]:
    """(apiVersion, kind) -> the name of its type."""
    found = {}
    for name, schema in definitions(minor).items():
        properties = schema.get("properties", {})
        versions, named = (properties.get(key, {}).get("enum", ()) for key in ("apiVersion", "kind"))
        for version in versions:
            for kind in named:
                found[version, kind] = name
    return found


def complaints(manifest: Mapping[str, Any], minor: str, *, own: frozenset[tuple[str, str]] = frozenset()) -> list[str]:
    """
    What a server of a release would refuse or warn of; empty: it takes the manifest.

    Args:
        own: (apiVersion, kind) of kinds that come with definitions of their own; nothing is known of these.
    """
    asked = (manifest["apiVersion"], manifest["kind"])
    if asked in own:
        return []
    if asked not in kinds(minor):
        return [f"no kind {asked[0]} {asked[1]}"]
    name = kinds(minor)[asked]
    validator = _validator(minor, name)
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in _deepest(validator.iter_errors(manifest))]


def has_field(minor: str, kind: str, path: str) -> bool:
    """
    Whether a release knows a field.

    Args:
        kind: Such as `batch/v1 Job`.
        path: Such as `spec.template.spec.containers.name`; lists and maps are gone through.
    """
    api_version, _, name = kind.partition(" ")
    at = kinds(minor).get((api_version, name))
    if at is None:
        return False
    schema: Mapping[str, Any] = definitions(minor)[at]
    for part in path.split("."):
        schema = _resolved(minor, schema)
        if part not in schema.get("properties", {}):
            return False
        schema = schema["properties"][part]
    return True


def defined(manifests: Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """(apiVersion, kind) of what CustomResourceDefinitions among the manifests define."""
    return frozenset(
        (f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"])
        for one in manifests
        if one["kind"] == "CustomResourceDefinition"
        for version in one["spec"]["versions"]
    )


@functools.cache
def _validator(minor: str, name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions(minor)})


def _deepest(errors: Iterator[jsonschema.ValidationError]) -> Iterator[jsonschema.ValidationError]:
    for error in errors:
        yield from _deepest(iter(error.context)) if error.context else (error,)


def _resolved(minor: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while True:
        if "$ref" in schema:
            schema = definitions(minor)[schema["$ref"].rpartition("/")[2]]
        elif "items" in schema:
            schema = schema["items"]
        elif "oneOf" in schema:
            schema = schema["oneOf"][0]
        else:
            return schema
