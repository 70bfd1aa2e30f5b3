"""Templates from files: JSON or YAML by content, with faults of form."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.validation.cloudformation import Fault, LinedMapping, Unreadable, line_of
from holdfast.validation.template_files.json_text import read_json
from holdfast.validation.template_files.parsed import Text
from holdfast.validation.template_files.yaml_text import read_yaml

if TYPE_CHECKING:
    from holdfast.validation.cloudformation import Template

LARGEST = 1 << 20
"""Bytes of a template in S3 (CloudFormation quotas)."""
_MOST_BYTES = 16 * LARGEST
_OF_A_TEMPLATE = re.compile(
    r"""^(?:[ \t]*["']?AWSTemplateFormatVersion|["']?(?:Resources|Transform))["']?[ \t]*:""", re.MULTILINE
)


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
    return Text(body=read.body, faults=(*read.faults, *_too_large(len(text.encode())), *_without_rubbish(read.body)))


def _too_large(size: int) -> Iterator[Fault]:
    if size > LARGEST:
        fix = "split it into nested stacks"
        yield Fault(code="HF020", line=1, given=f"{size} bytes", allowed=f"at most {LARGEST}", fix=fix)


def _without_rubbish(body: LinedMapping) -> Iterator[Fault]:
    """Drop values that cannot be properties, and report them."""
    resources = body.get("Resources")
    for name, resource in resources.items() if isinstance(resources, Mapping) else ():
        properties = resource.get("Properties", {}) if isinstance(resource, LinedMapping) else {}
        if isinstance(properties, Mapping):
            continue
        line, path = resource.lines["Properties"], f"Resources.{name}.Properties"
        resource["Properties"] = LinedMapping(line)
        given = "nothing" if properties is None else "a list" if isinstance(properties, list) else f'"{properties}"'
        yield Fault(code="HF020", line=line, path=path, given=given, allowed="a mapping", fix="write name: value")


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
