"""Templates from files: JSON or YAML by content, with faults of form."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.validation.cloudformation import Fault, LinedMapping, Unreadable, line_of
from holdfast.validation.template_files.json_text import read_json
from holdfast.validation.template_files.parsed import Text
from holdfast.validation.template_files.yaml_text import read_yaml

if TYPE_CHECKING:
    from holdfast.validation.cloudformation import Template

LARGEST = 1 << 20
"""Bytes of a template in S3 (CloudFormation quotas)."""
_MOST_BYTES = 16 * LARGEST
_MOST = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
"""Entries of sections (CloudFormation quotas)."""
_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Globals",
        "Hooks",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
        "Transform",
    }
)
"""Of a template (template anatomy); Globals is of the SAM transform."""
_OF_A_TEMPLATE = re.compile(r"""^["']?(?:AWSTemplateFormatVersion|Resources|Transform)["']?[ \t]*:""", re.MULTILINE)
_ATTRIBUTES = frozenset(
    {
        "Condition",
        "Connectors",
        "CreationPolicy",
        "DeletionPolicy",
        "DependsOn",
        "Description",
        "IgnoreGlobals",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
        "Version",
    }
)
"""Of a resource (resource attributes); Connectors and IgnoreGlobals are of the SAM transform."""


def looks_like_a_template(path: Path) -> bool:
    """True for a file with template sections, or JSON."""
    try:
        text = path.read_bytes()[:_MOST_BYTES].decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    return text.lstrip()[:1] in ("{", "[") or _OF_A_TEMPLATE.search(text) is not None


def read_text(path: Path) -> Text:
    """Read the template in a file; raises Unreadable."""
    try:
        text = _decoded(path)
        read = _parsed(text, is_json=path.suffix == ".json")
    except Unreadable as error:
        error.file = str(path)
        raise
    faults = (*read.faults, *_shape(read.body, size=len(text.encode())))
    _without_rubbish(read.body)
    return Text(body=read.body, faults=faults)


def _without_rubbish(body: LinedMapping) -> None:
    """Drop values that cannot be properties: they are reported already."""
    resources = body.get("Resources")
    for resource in resources.values() if isinstance(resources, Mapping) else ():
        if isinstance(resource, LinedMapping) and "Properties" in resource:
            properties = resource["Properties"]
            if not isinstance(properties, Mapping):
                resource["Properties"] = LinedMapping(resource.lines["Properties"])


def no_resources(template: "Template") -> Unreadable:
    error = Unreadable(
        line=line_of(template.body, "Resources") or 1,
        given="no resources",
        allowed="a CloudFormation template, which has Resources",
        fix="give a template",
    )
    error.file = template.path
    return error


def _parsed(text: str, *, is_json: bool) -> Text:
    if not is_json and text.lstrip()[:1] != "{":
        return read_yaml(text)
    try:
        return read_json(text)
    except Unreadable:
        if is_json:
            raise
        return read_yaml(text)


def _decoded(path: Path) -> str:
    try:
        with path.open("rb") as file:
            held = file.read(_MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror.lower() if error.strerror else "it cannot be read"
        raise Unreadable(line=1, given=reason, allowed="a readable file", fix="check the path") from None
    if len(held) > _MOST_BYTES:
        raise Unreadable(
            line=1,
            given=f"more than {_MOST_BYTES} bytes",
            allowed=f"a template of at most {LARGEST} bytes",
            fix="give a template",
        )
    try:
        return held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(
            line=held[: error.start].count(b"\n") + 1,
            given="bytes that are no UTF-8",
            allowed="UTF-8 text",
            fix="save the file as UTF-8",
        ) from None


def _shape(body: LinedMapping, *, size: int) -> Iterator[Fault]:
    if size > LARGEST:
        yield _fault(body, "", given=f"{size} bytes", allowed=f"at most {LARGEST}", fix="split it into nested stacks")
    for section, most in _MOST.items():
        entries = body.get(section)
        if isinstance(entries, Mapping) and len(entries) > most:
            given = f"{len(entries)} entries"
            yield _fault(body, section, given=given, allowed=f"at most {most}", fix="split it into nested stacks")
    for section in body.keys() - _SECTIONS:
        allowed = ", ".join(sorted(_SECTIONS))
        yield _fault(body, section, given=f'the section "{section}"', allowed=allowed, fix="remove or rename it")
    for section in ("Parameters", "Mappings", "Conditions", "Outputs"):
        if section in body and not isinstance(body[section], Mapping):
            yield _fault(body, section, given=_kind(body[section]), allowed="a mapping", fix="write name: value")
    resources = body.get("Resources", {})
    if not isinstance(resources, Mapping):
        yield _fault(body, "Resources", given=_kind(resources), allowed="a mapping", fix="write name: value")
        return
    for name, resource in resources.items():
        if not name.startswith("Fn::"):
            yield from _resource(body, name, resource)


def _resource(body: LinedMapping, name: str, resource: Any) -> Iterator[Fault]:
    place = f"Resources.{name}"
    if not isinstance(resource, Mapping):
        yield _fault(body, place, given=_kind(resource), allowed="a resource, which has a Type", fix="write a Type")
        return
    if not isinstance(resource.get("Type"), str):
        yield _fault(body, place, given="no Type", allowed="a resource, which has a Type", fix="write a Type")
    properties = resource.get("Properties", {})
    if not isinstance(properties, Mapping) and properties is not None:
        yield _fault(body, f"{place}.Properties", given=_kind(properties), allowed="a mapping", fix="write name: value")
    for attribute in resource.keys() - _ATTRIBUTES:
        if not attribute.startswith("Fn::"):
            yield _fault(
                body,
                f"{place}.{attribute}",
                given=f'the attribute "{attribute}"',
                allowed=", ".join(sorted(_ATTRIBUTES)),
                fix="move it into Properties, or remove it",
            )


def _fault(body: LinedMapping, path: str, *, given: str, allowed: str, fix: str) -> Fault:
    return Fault(code="HF020", line=line_of(body, path) or 1, path=path, given=given, allowed=allowed, fix=fix)


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, Mapping) else f'"{value}"'
