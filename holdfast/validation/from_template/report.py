"""
Report on templates: faults of form, findings in each scenario, and those of cfn-lint.

A finding in several scenarios is reported once, for the most common one; one that needs a parameter's value reports it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from holdfast.validation.cfn_lint import lint
from holdfast.validation.cloudformation import EXAMPLE_ACCOUNT, Fault, Graph, Template, Unreadable, Values, line_of
from holdfast.validation.engine import judge, most_specific
from holdfast.validation.from_template.causes import cause_of
from holdfast.validation.from_template.circles import circles
from holdfast.validation.from_template.conditions import Conditions
from holdfast.validation.from_template.per_cluster import app_of, deployments_in_app
from holdfast.validation.from_template.scenario import Scenario, scenarios
from holdfast.validation.from_template.unread import Note, unread
from holdfast.validation.from_template.without_cluster import NO_CLUSTER, has_cluster, surroundings
from holdfast.validation.model import Deployment, Finding, worst_first
from holdfast.validation.template_files import read_templates

UNREAD = "HF022"


@dataclass(frozen=True, kw_only=True)
class Report:
    usable: bool
    """Whether it could be read at all."""
    findings: list[Finding]
    """Worst first."""


def check_template(
    path: Path,
    *,
    region: str | None = None,
    parameters: Mapping[str, str] | None = None,
    today: date | None = None,
    linted: bool = True,
) -> Report:
    """
    Judge a template file, or a cloud assembly. Raises ValueError for another folder, or an unknown parameter.

    Args:
        region: Of the deployment. Default: the assembly's, or any.
        parameters: Values. Default: their defaults, and those that conditions compare.
        today: Date for versions. Default: that of the facts about them.
        linted: With the findings of cfn-lint, nine tenths of the time. None of Holdfast's own depends on them.
    """
    try:
        templates = read_templates(path)
    except Unreadable as error:
        return Report(usable=False, findings=[_fault(error.fault, file=error.file or str(path))])
    templates = [_with(each, region, parameters if each.parent is None else None) for each in templates]
    return Report(usable=True, findings=findings_in_app(templates, today=today, linted=linted))


def findings_in_app(templates: Sequence[Template], *, today: date | None = None, linted: bool = True) -> list[Finding]:
    found: dict[tuple[str, str, str, str], Finding] = {}
    general = _linted(templates) if linted else ()
    for finding in (*_written(templates), *_judged(templates, today), *general):
        found.setdefault((finding.code, finding.severity, finding.path, finding.message), finding)
    return worst_first(most_specific(list(found.values())))


def _with(template: Template, region: str | None, parameters: Mapping[str, str] | None) -> Template:
    if parameters:
        there = template.section("Parameters")
        unknown = next((name for name in parameters if name not in there), None)
        if unknown is not None:
            names = ", ".join(there) or "none"
            raise ValueError(f"{template.path}: got a value for the parameter {unknown}; the template has: {names}")
    return replace(template, region=region or template.region, values=parameters or {})


def _written(templates: Sequence[Template]) -> Iterator[Finding]:
    for template in templates:
        for fault in (*template.faults, *Conditions(template).faults()):
            yield _fault(fault, file=template.path)
    for note in unread(templates):
        yield _unread(note)


def _linted(templates: Sequence[Template]) -> Iterator[Finding]:
    app = app_of(Values(Graph(templates)))
    for template in templates:
        linted = lint(template, region=app.region(template), complete=app.complete)
        yield from linted.findings
        if linted.failed:
            cause = f"cfn-lint failed ({linted.failed})"
            yield _unread(Note(file=template.path, path="", line=1, cause=cause, fix="run cfn-lint on the template"))


def _unread(note: Note) -> Finding:
    return Finding(
        code=UNREAD,
        severity="not-checked",
        path=f"{note.file}#{note.path}" if note.file else note.path,
        message=f"not checked: {note.cause}",
        fix=note.fix,
        line=note.line,
        cause=note.cause,
    )


def _fault(fault: Fault, *, file: str) -> Finding:
    return Finding(
        code=fault.code,
        severity="error",
        path=f"{file}#{fault.path}" if file else fault.path,
        message=f"got {fault.given}; allowed: {fault.allowed}",
        fix=fault.fix,
        line=fault.line,
    )


def _judged(templates: Sequence[Template], today: date | None) -> Iterator[Finding]:
    known: set[tuple[str, str, str]] = set()
    last: Scenario | None = None
    usual: set[str] = set()
    for last in scenarios(templates):
        for template in last.templates:
            for fault in circles(template):
                if (fault.code, fault.path, fault.given) not in known:
                    known.add((fault.code, fault.path, fault.given))
                    yield _under(_fault(fault, file=template.path), last)
        bodies = {template.path: template.body for template in last.templates}
        usual = usual if last.differs else {each.path for each in Graph(last.templates).resources()}
        every = [each.changed(today=today) for each in _deployments(last.templates)]
        for finding in most_specific([finding for deployment in every for finding in judge(deployment)]):
            key = (finding.code, finding.path, finding.message)
            if key not in known and finding.path != NO_CLUSTER and not _chosen_with_it(finding, bodies, last, usual):
                known.add(key)
                yield _in_scenario(finding, bodies, last)
    if last is not None and last.left_out:
        every_way = last.most + last.left_out
        cause = f"{last.most} of {every_way} ways to choose the parameters that conditions ask for were judged"
        line = line_of(templates[0].body, "Conditions")
        fix = "give those that you deploy with: --parameters NAME=VALUE"
        yield _unread(Note(file=templates[0].path, path="Conditions", line=line, cause=cause, fix=fix))


def _chosen_with_it(finding: Finding, bodies: Mapping[str, Any], scenario: Scenario, usual: set[str]) -> bool:
    """
    Return True for the default of a parameter, where another one is changed: both are chosen together.

    Args:
        usual: Places of the resources of the first scenario, where the default was judged with all others.
    """
    if not scenario.differs or not any(finding.path.startswith(f"{path}.") for path in usual):
        return False
    file, _, place = finding.path.rpartition("#")
    value: Any = bodies.get(file)
    for key in place.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    name = value.get("Ref") if isinstance(value, Mapping) else None
    parameters = bodies[file].get("Parameters", {}) if name else {}
    return name in parameters and name not in scenario.differs


def _deployments(templates: Sequence[Template]) -> Iterator[Deployment]:
    if has_cluster(templates):
        yield from deployments_in_app(templates)
    else:
        yield from surroundings(templates)


def _in_scenario(finding: Finding, bodies: Mapping[str, Any], scenario: Scenario) -> Finding:
    """Finding with its line and its cause, without file names in the text."""
    file, _, place = finding.path.rpartition("#")
    body = bodies.get(file)
    message, fix = (_without_files(text, file, bodies) for text in (finding.message, finding.fix))
    cause = ""
    if finding.severity == "not-checked" and not finding.code.startswith("HF9"):
        cause = cause_of(body, place)
    elif finding.severity == "not-checked":
        cause = "needs AWS credentials (--account)"
    return _under(replace(finding, message=message, fix=fix, line=line_of(body, place), cause=cause), scenario)


def _under(finding: Finding, scenario: Scenario) -> Finding:
    if not scenario.differs:
        return finding
    what = ", ".join(f"{name} = {value}" for name, value in scenario.differs.items())
    return replace(finding, message=f"{finding.message} (with {what})")


def _without_files(text: str, own: str, files: Mapping[str, Any]) -> str:
    """Paths by key; those of other templates with the file's name."""
    text = text.replace(EXAMPLE_ACCOUNT, "${AWS::AccountId}")
    for file in sorted(filter(None, files), key=len, reverse=True):
        text = text.replace(f"{file}#", "" if file == own else f"{Path(file).name}#")
    return text
