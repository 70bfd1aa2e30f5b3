"""A match of cfn-lint as a finding: its place in our words, its message, and a fix."""

import re
from collections.abc import Iterable

from holdfast.catalog.facts import type_names
from holdfast.validation.cloudformation import Template, line_of
from holdfast.validation.model import Finding
from holdfast_common import closest_word

_LONGEST = 300
"""Characters of a message; cfn-lint lists all resources of a template, or all types of a property."""
_USED_AT = re.compile(r" at '(Resources/[^']+)'")
_MISSING = re.compile(r"^'([^']+)' is a required property")
_CHOICES = re.compile(r"^(.+?) is not one of \[(.*?)\]")
_MEANT = re.compile(r"Did you mean '([^']+)'")
_UNEXPECTED = re.compile(r"\('([^']+)' was unexpected")
_NO_TYPE = re.compile(r"^Resource type '([^']+)' does not exist")
_KIND = re.compile(r" is not of type '([^']+)'")
_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_SET = re.compile(r"(across the resources )\{([^}]*)\}")


def finding_of(*, code: str, message: str, path: Iterable[str | int], template: Template) -> Finding:
    place = _place(path, message)
    text = _SET.sub(lambda match: match[1] + ", ".join(sorted(match[2].split(", "))), message)
    return Finding(
        code=code,
        severity="error" if code.startswith("E") else "warning",
        path=f"{template.path}#{place}" if template.path else place,
        message=text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...",
        fix=_fix(message),
        line=line_of(template.body, place),
    )


def _place(path: Iterable[str | int], message: str) -> str:
    """Path without functions; of a parameter's value the property that takes it, of a missing property its own."""
    used = _USED_AT.search(message)
    parts = used[1].split("/") if used else [str(each) for each in path]
    kept: list[str] = []
    for part in parts:
        if part == "Ref" or part.startswith("Fn::"):
            break
        kept.append(part)
    missing = _MISSING.match(message)
    return ".".join([*kept, missing[1]] if missing else kept)


def _fix(message: str) -> str:
    if meant := _MEANT.search(message):
        return f"did you mean {meant[1]}?"
    if missing := _MISSING.match(message):
        return f"add {missing[1]}"
    if unexpected := _UNEXPECTED.search(message):
        return f"remove {unexpected[1]}, or move it to where it belongs"
    if unknown := _NO_TYPE.match(message):
        near = closest_word(unknown[1], type_names())
        return f"did you mean {near}?" if near else "name a type of the CloudFormation reference"
    if choice := _CHOICES.match(message):
        names = [each.strip().strip("'") for each in choice[2].split(",")]
        near = None if choice[1].isdigit() else closest_word(choice[1].strip("'"), names)
        return f"did you mean {near}?" if near else f"choose one of them: {', '.join(names[:4])}"
    if wrong := _KIND.search(message):
        return f"write {_KINDS.get(wrong[1], wrong[1])}"
    return "correct it, or leave it out"
