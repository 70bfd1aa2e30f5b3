"""What others say about all resources of all environments: the table of docs/concepts/security.md.

``python tests/support/judging.py`` writes it anew; a test of ``make e2e`` holds that it is so.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsonschema
import regex
from cfnlint.api import ManualArgs, lint
from nagging import PACKS, accepted_by, nagged
from registry_schemas import region_types, schema

from holdfast.catalog.facts import has_type, hyperpod_regions, hyperpod_types
from holdfast.config import load
from holdfast_stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
SECURITY = ROOT / "docs" / "concepts" / "security.md"
NAMES = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))
LINT_ACCEPTED = {
    "W3005": "the CDK expands a dependency on a construct to all in it, also to what a Ref names anyway",
    "W3010": "the zone is part of the environment file, on purpose",
}
BEGIN, END = "<!-- Written by `python tests/support/judging.py`: begin -->", "<!-- end -->"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What is said about one environment."""

    name: str
    resources: int
    types: int
    schema: tuple[str, ...]
    """Errors of CloudFormation's resource schemas, in the environment's region."""
    regions: tuple[str, ...]
    """Those that the file may name: with HyperPod, all its instance types and all resource types."""
    lint: tuple[str, ...]
    """What cfn-lint finds in any of them."""
    objections: Mapping[str, int]
    """By pack of cdk-nag."""
    unaccepted: tuple[str, ...]
    """Objections without a row."""


def template_of(name: str) -> tuple[dict[str, Any], str, list[tuple[str, str]]]:
    """Template, region, and what cdk-nag objects to."""
    environment = load(ROOT / "environments" / f"{name}.yaml")
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context=context, analytics_reporting=False, outdir=folder)
        HyperPodStack(app, environment.stack_name, environment=environment)
        assembly, objections = nagged(app)
        template: dict[str, Any] = json.loads((assembly / f"{environment.stack_name}.template.json").read_text())
    return template, environment.region, objections


def schema_errors(template: Mapping[str, Any], region: str) -> Iterator[str]:
    """What the resource schemas say, as far as a value is known before the deployment."""
    for name, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind not in region_types(region):
            if kind.startswith("AWS::") and kind != "AWS::CDK::Metadata":
                yield f"{name}: {kind} is not in {region}"
            continue
        found = schema(kind, region)
        for error in VALIDATOR(found).iter_errors(resource.get("Properties", {})):
            if not _is_open(error.instance):
                yield f"{name}: {'/'.join(map(str, error.path))}: {error.message}"


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    """Patterns of schemas are not Python's: they have classes such as \\p{L}."""
    if isinstance(instance, str) and not regex.search(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


VALIDATOR = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": _pattern})


def _is_open(value: Any) -> bool:
    """Whether a value, or a part of it, is known at deployment only."""
    if isinstance(value, dict):
        return any(key == "Ref" or key.startswith("Fn::") or _is_open(item) for key, item in value.items())
    return isinstance(value, list) and any(_is_open(item) for item in value)


def may_name(template: Mapping[str, Any]) -> tuple[str, ...]:
    """The regions that a file with this template may name: elsewhere ``holdfast check`` finds HF031, HF032 or HF033."""
    kinds = {resource["Type"] for resource in template["Resources"].values()}
    (cluster,) = (item for item in template["Resources"].values() if item["Type"] == "AWS::SageMaker::Cluster")
    groups, wanted = cluster["Properties"]["InstanceGroups"], set[str]()
    for group in groups:
        wanted |= set(group.get("InstanceRequirements", {}).get("InstanceTypes", ()))
        wanted |= {group["InstanceType"]} if "InstanceType" in group else set()
    return tuple(
        region
        for region in hyperpod_regions()
        if wanted <= hyperpod_types(region) and all(has_type(kind, region) is not False for kind in kinds)
    )


def judged(name: str) -> Judgement:
    """All of it for one environment."""
    template, region, objections = template_of(name)
    regions = may_name(template)
    found = lint(json.dumps(template), config=ManualArgs(regions=list(regions)))
    return Judgement(
        name=name,
        resources=len(template["Resources"]),
        types=len({resource["Type"] for resource in template["Resources"].values()}),
        schema=tuple(schema_errors(template, region)),
        regions=regions,
        lint=tuple(str(finding) for finding in found if finding.rule.id not in LINT_ACCEPTED),
        objections={pack: sum(rule.startswith(pack) for rule, _ in objections) for pack in PACKS},
        unaccepted=tuple(f"{rule} {place}" for rule, place in objections if accepted_by(rule, place) is None),
    )


def table(found: list[Judgement]) -> str:
    """The section as it stands in the page."""
    rows = [
        f"| `{each.name}` | {each.resources} of {each.types} types | {len(each.schema)} | {len(each.lint)} in "
        f"{len(each.regions)} | {each.objections['AwsSolutions']} | {each.objections['NIST.800.53.R5']} | "
        f"{len(each.unaccepted)} |"
        for each in found
    ]
    lines = [
        BEGIN,
        "",
        "Errors of CloudFormation's resource schemas and of cfn-lint are those of the pinned cfn-lint.",
        "It is asked about every region that the file may name: of the "
        f"{len(hyperpod_regions())} public regions with HyperPod",
        "those that have all its instance types and resource types; for others `holdfast check` has an error",
        "(HF032 to HF034).",
        "Objections of cdk-nag without a row in the table below are in the last column.",
        "",
        "| environment | resources | schema errors | cfn-lint errors, regions | AwsSolutions | NIST 800-53 | no row |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        *(f"- `{each.name}` may name {', '.join(each.regions)}" for each in found),
        "",
        END,
    ]
    return "\n".join(lines)


def written() -> str:
    """The section that the page has."""
    text = SECURITY.read_text()
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def main() -> None:
    """Write the section."""
    text = SECURITY.read_text()
    SECURITY.write_text(text.replace(written(), table([judged(name) for name in NAMES])))


if __name__ == "__main__":
    main()
