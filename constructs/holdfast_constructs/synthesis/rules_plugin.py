"""
Holdfast's rules at synthesis: every cluster of an app is judged, whether our constructs or bare L1s define it.

The CDK runs the plugin over the templates that it has written, prints what it reports, and fails the synthesis on
errors. Warnings, and what could not be checked because only the deployment knows it, are printed only. A finding that
is meant is acknowledged with a reason, on the construct it is about or on one above it::

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
    Judge all clusters of the app that ``scope`` belongs to, when it is synthesised.

    ``HyperPodCluster`` calls it; an app of bare ``CfnCluster`` calls it once itself. More calls change nothing: the
    rules belong to the outermost stage, because a cluster may stand on what another stage defines.

    Args:
        subnets: That the cluster is in. What is known of imported ones is in no template. Default: nothing is.
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
    """Id, zone and block of an imported subnet, as far as they were told and are no tokens."""
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
        """What findings are acknowledged under: ``holdfast::HFnnn``."""
        return NAME

    @property
    def version(self) -> str | None:
        """The rules have no version of their own."""
        return None

    @property
    def rule_ids(self) -> list[str]:
        """The codes of all rules."""
        return sorted(all_rules())

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Judge the templates that the CDK has written."""
        findings = judge_templates([replace(each, subnets=self._subnets()) for each in _templates(context)])
        return PolicyValidationPluginReport(
            success=all(finding.severity != "error" for finding in findings), violations=list(_violations(findings))
        )

    def _subnets(self) -> Mapping[str, Mapping[str, str]]:
        entries = [] if self._root is None else self._root.node.metadata
        found = [entry.data for entry in entries if entry.type == _SUBNET]
        return {known["subnet_id"]: known for known in found}


def judge_templates(templates: Sequence[Template]) -> list[Finding]:
    """The findings about all clusters of an app; what two clusters share is told once."""
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
    """One for all rules that wait for the same thing: a line per rule would bury what is wrong."""
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
    """Each resource once, at the first place of it."""
    firsts: dict[tuple[str, str], str] = {}
    for finding in findings:
        template, logical_id, _, _ = _split(finding.path)
        firsts.setdefault((template, logical_id), finding.path)
    yield from map(_resource, firsts.values())


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
