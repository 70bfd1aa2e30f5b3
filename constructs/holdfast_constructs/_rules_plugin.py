"""
Holdfast's rules at synthesis: every cluster of an app is judged, whether our constructs or bare L1s define it.

The CDK runs the plugin over the templates that it has written, prints what it reports, and fails the synthesis on
errors. Warnings, and what could not be checked because only the deployment knows it, are printed only. A finding that
is meant is acknowledged with a reason, on the construct it is about or on one above it::

    Validations.of(cluster).acknowledge(Acknowledgment(id="holdfast::HF627", reason="scratch data"))
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Stage,
    Validations,
)
from constructs import IConstruct

from holdfast.validation import Finding, judge, rules
from holdfast.validation._template import Template, deployments_in_app
from holdfast.validation._template_files import nested_templates, read_template

NAME = "holdfast"
NOT_CHECKED = "not-checked"
"""The rule name under which places are reported that no rule could judge."""
_MARK = "holdfast:rules"
_TEMPLATE = re.compile(r"\S+\.template\.json#")


def register_rules(scope: IConstruct) -> None:
    """
    Judge all clusters of the app that ``scope`` belongs to, when it is synthesised.

    ``HyperPodCluster`` calls it; an app of bare ``CfnCluster`` calls it once itself. More calls change nothing: the
    rules belong to the outermost stage, because a cluster may stand on what another stage defines.
    """
    root = scope.node.root
    if not Stage.is_stage(root) or any(entry.type == _MARK for entry in root.node.metadata):
        return
    root.node.add_metadata(_MARK, NAME)
    Validations.of(root).add_plugins(RulesPlugin())


@jsii.implements(IPolicyValidationPlugin)
class RulesPlugin:
    """Judges the clusters in the templates of an app."""

    @property
    def name(self) -> str:
        """What findings are acknowledged under: ``holdfast::HFnnn``."""
        return NAME

    @property
    def version(self) -> str | None:
        """The rules have no version of their own."""
        return None

    @property
    def rule_ids(self) -> list[str]:
        """The codes of all rules."""
        return sorted(rules())

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Judge the templates that the CDK has written."""
        findings = judge_templates(_templates(context))
        return PolicyValidationPluginReport(
            success=all(finding.severity != "error" for finding in findings), violations=list(_violations(findings))
        )


def judge_templates(templates: Sequence[Template]) -> list[Finding]:
    """The findings about all clusters of an app; what two clusters share is told once."""
    found = (finding for deployment in deployments_in_app(templates) for finding in judge(deployment))
    return list(dict.fromkeys(found))


def _templates(context: IPolicyValidationContext) -> list[Template]:
    found: list[Template] = []
    for stack in context.stack_templates:
        path = Path(stack.template_path)
        template = read_template(path, region=stack.region, account=stack.account_id)
        found += [template, *nested_templates(path, template)]
    return found


def _violations(findings: Iterable[Finding]) -> Iterator[PolicyViolation]:
    unknown: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.severity == "not-checked":
            unknown[finding.path].append(finding)
            continue
        _, _, _, place = _split(finding.path)
        yield PolicyViolation(
            rule_name=finding.code,
            severity=finding.severity,
            description=f"{finding.code} {place + ': ' if place else ''}{_short(finding.message)}",
            fix=_short(finding.fix),
            violating_resources=[_resource(finding.path)],
        )
    yield from (_not_checked(path, same_place) for path, same_place in unknown.items())


def _not_checked(path: str, findings: Sequence[Finding]) -> PolicyViolation:
    """One for all rules that wait for the same value: a line per rule would bury what is wrong."""
    titles: Mapping[str, str] = {finding.code: rules()[finding.code].title for finding in findings}
    _, _, _, place = _split(path)
    return PolicyViolation(
        rule_name=NOT_CHECKED,
        severity="info",
        description=f"{place or 'the cluster'}: not known before deployment, so not checked: {', '.join(titles)}",
        fix="make sure that these hold: " + "; ".join(f"{code} {title}" for code, title in titles.items()),
        violating_resources=[_resource(path)],
    )


def _short(text: str) -> str:
    """Without the files that paths begin with: the report names each template already."""
    return _TEMPLATE.sub("", text)


def _resource(path: str) -> PolicyViolatingResource:
    template, logical_id, location, _ = _split(path)
    return PolicyViolatingResource(template_path=template, resource_logical_id=logical_id, locations=[location])


def _split(path: str) -> tuple[str, str, str, str]:
    """Template, logical id, location in the resource, and the latter without ``Properties``."""
    template, _, rest = path.rpartition("#")
    _, logical_id, location = (*rest.split(".", 2), "", "")[:3]
    return template, logical_id, location, location.removeprefix("Properties").removeprefix(".")


__all__ = ["RulesPlugin", "judge_templates", "register_rules"]
