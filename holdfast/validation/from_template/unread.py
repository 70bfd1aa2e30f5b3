"""Unreadable parts of templates: one note per cause, never a silent pass."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.validation.cloudformation import Graph, Template, line_of
from holdfast.validation.template_files import EXTENSIONS, transforms

_SERVERLESS = "AWS::Serverless-2016-10-31"
_READ = frozenset({EXTENSIONS, _SERVERLESS, "AWS::SecretsManager-2020-07-23", "AWS::SecretsManager-2024-09-16"})


@dataclass(frozen=True, kw_only=True)
class Note:
    """Part of a template that is not judged."""

    file: str
    path: str
    line: int | None
    cause: str
    fix: str


def unread(templates: Sequence[Template]) -> Iterator[Note]:
    graph = Graph(templates)
    for template in templates:
        yield from _macros(template)
        stacks = graph.of_type("AWS::CloudFormation::Stack", "AWS::Serverless::Application")
        apart = [each.logical_id for each in stacks if each.template is template and graph.nested(each) is None]
        if apart:
            yield _note(
                template,
                f"Resources.{apart[0]}",
                cause=f"the templates of nested stacks are not beside this one: {', '.join(apart)}",
                fix="check those templates too, or give their paths as TemplateURL",
            )


def _macros(template: Template) -> Iterator[Note]:
    named = transforms(template.body)
    resources = template.section("Resources")
    unknown = sorted(named - _READ)
    if unknown:
        yield _note(
            template,
            "Transform",
            cause=f"what {', '.join(unknown)} makes of it is not known before deployment",
            fix="check the processed template, as CloudFormation shows it",
        )
    if _SERVERLESS in named or any(_is_serverless(body) for body in resources.values()):
        yield _note(
            template,
            "Transform",
            cause="what AWS::Serverless makes of its resources is not known before deployment",
            fix="check the processed template, as CloudFormation shows it",
        )
    for name in resources:
        if name.startswith("Fn::"):
            yield _note(
                template,
                f"Resources.{name}",
                cause=f"what {name} goes through is not known before deployment",
                fix="give the parameter of its collection a default, or check the processed template",
            )
    included = _included(template.body)
    if included is not None:
        yield _note(
            template,
            included,
            cause="what Fn::Transform brings in is not known before deployment",
            fix="check the processed template, as CloudFormation shows it",
        )


def _is_serverless(body: Any) -> bool:
    return isinstance(body, Mapping) and str(body.get("Type")).startswith("AWS::Serverless::")


def _included(value: Any, place: str = "") -> str | None:
    entries: Any = ()
    if isinstance(value, Mapping):
        if "Fn::Transform" in value:
            return place
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    found = (_included(item, f"{place}.{key}" if place else str(key)) for key, item in entries)
    return next((each for each in found if each is not None), None)


def _note(template: Template, path: str, *, cause: str, fix: str) -> Note:
    return Note(file=template.path, path=path, line=line_of(template.body, path), cause=cause, fix=fix)
