"""
Holdfast's rules at synthesis, for all clusters of an app, also bare L1s.

The CDK runs the plugin over the synthesized templates, prints its report, and fails on errors. Warnings, and values
that only the deployment knows, are printed only. Acknowledge a finding with a reason, on its construct or on a parent::

    Validations.of(cluster).acknowledge(Acknowledgment(id="holdfast::HF627", reason="scratch data"))
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Stage,
    Token,
    Validations,
)
from aws_cdk import aws_ec2 as ec2
from constructs import IConstruct

from holdfast.validation import Finding, all_rules
from holdfast.validation.cloudformation import Template
from holdfast.validation.from_template import findings_in_app
from holdfast.validation.template_files import nested_templates, read_template

NAME = "holdfast"
NOT_CHECKED = "not-checked"
"""The rule name under which places are reported that no rule could judge."""
_MARK = "holdfast:rules"
_SUBNET = "holdfast:subnet"
_TEMPLATE = re.compile(r"\S+\.template\.json#")


def register_rules(scope: IConstruct, *, subnets: Sequence[ec2.ISubnet] = ()) -> None:
    """
    Judge all clusters of the app of ``scope`` at synthesis.

    ``HyperPodCluster`` calls it; an app of bare ``CfnCluster`` calls it itself. Repeated calls have no effect: the
    rules belong to the outermost stage, because a cluster may depend on another stage.

    Args:
        subnets: Of the cluster, with facts of imported ones, which no template has.
    """
    root = scope.node.root
    if not Stage.is_stage(root):
        return
    for subnet in subnets:
        known = _known(subnet)
        if known:
            root.node.add_metadata(_SUBNET, known)
    if any(entry.type == _MARK for entry in root.node.metadata):
        return
    root.node.add_metadata(_MARK, NAME)
    Validations.of(root).add_plugins(RulesPlugin(root))


def _known(subnet: ec2.ISubnet) -> Mapping[str, str]:
    if Token.is_unresolved(subnet.subnet_id):
        return {}
    known = {"subnet_id": subnet.subnet_id}
    for key, attribute in (("availability_zone", "availability_zone"), ("cidr", "ipv4_cidr_block")):
        with contextlib.suppress(RuntimeError, AttributeError):  # an import that was not told raises
            value = getattr(subnet, attribute)
            if isinstance(value, str) and not Token.is_unresolved(value):
                known[key] = value
    return known if len(known) > 1 else {}


@jsii.implements(IPolicyValidationPlugin)
class RulesPlugin:
    """Judges the clusters in the templates of an app."""

    def __init__(self, root: IConstruct | None = None) -> None:
        self._root = root

    @property
    def name(self) -> str:
        """Prefix of acknowledgments: ``holdfast::HFnnn``."""
        return NAME

    @property
    def version(self) -> str | None:
        return None

    @property
    def rule_ids(self) -> list[str]:
        return sorted(all_rules())

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        findings = judge_templates([replace(each, subnets=self._subnets()) for each in _templates(context)])
        return PolicyValidationPluginReport(
            success=all(finding.severity != "error" for finding in findings), violations=list(_violations(findings))
        )

    def _subnets(self) -> Mapping[str, Mapping[str, str]]:
        entries = [] if self._root is None else self._root.node.metadata
        found = [entry.data for entry in entries if entry.type == _SUBNET]
        return {known["subnet_id"]: known for known in found}


def judge_templates(templates: Sequence[Template]) -> list[Finding]:
    """Findings about all clusters of an app; those of shared parts are reported once."""
    return findings_in_app(templates)


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
            unknown[finding.cause or finding.path].append(finding)
            continue
        _, _, _, place = _split(finding.path)
        yield PolicyViolation(
            rule_name=finding.code,
            severity=finding.severity,
            description=f"{finding.code} {place + ': ' if place else ''}{_short(finding.message)}",
            fix=_short(finding.fix),
            violating_resources=[_resource(finding.path)],
        )
    yield from map(_not_checked, unknown.values())


def _not_checked(findings: Sequence[Finding]) -> PolicyViolation:
    """One finding per cause: a line per rule would hide errors."""
    path = findings[0].path
    titles: Mapping[str, str] = {finding.code: all_rules()[finding.code].title for finding in findings}
    _, _, _, place = _split(path)
    return PolicyViolation(
        rule_name=NOT_CHECKED,
        severity="info",
        description=f"{place or 'the cluster'}: {findings[0].cause}, so not checked: {', '.join(titles)}",
        fix="make sure that these hold: " + "; ".join(f"{code} {title}" for code, title in titles.items()),
        violating_resources=list(_resources(findings)),
    )


def _resources(findings: Sequence[Finding]) -> Iterator[PolicyViolatingResource]:
    firsts: dict[tuple[str, str], str] = {}
    for finding in findings:
        template, logical_id, _, _ = _split(finding.path)
        firsts.setdefault((template, logical_id), finding.path)
    yield from map(_resource, firsts.values())


def _short(text: str) -> str:
    """Without file names: the report names each template."""
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
