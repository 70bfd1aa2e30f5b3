"""cdk-nag over an app, and the objections that are accepted."""

import functools
import json
import re
from pathlib import Path

import aws_cdk as cdk
import cdk_nag
import yaml

OBJECTIONS = Path(__file__).parents[1] / "cases" / "security" / "objections.yaml"
PACKS = ("AwsSolutions", "NIST.800.53.R5")


def nagged(app: cdk.App) -> tuple[Path, list[tuple[str, str]]]:
    """Synthesise; the assembly, and each objection of AwsSolutions and NIST 800-53 as rule and construct path."""
    nag = cdk.Validations.of(app)
    nag.add_plugins(cdk_nag.AwsSolutionsChecks(verbose=False))
    nag.add_plugins(cdk_nag.NIST80053R5Checks(verbose=False))
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
    assembly = Path(app.outdir)
    report = json.loads((assembly / "validation-report.json").read_text())
    found = []
    for plugin in report["pluginReports"]:
        for violation in plugin.get("violations", []):
            if violation["ruleName"].startswith(PACKS):
                places = violation.get("violatingConstructs") or violation.get("violatingResources")
                found += [(violation["ruleName"], place["constructPath"]) for place in places]
    return assembly, found


@functools.cache
def accepted() -> list[tuple[str, str, str]]:
    """Rule and place as patterns, and why."""
    return [(row["rule"], row["where"], row["why"]) for row in yaml.safe_load(OBJECTIONS.read_text())]


def accepted_by(rule: str, place: str) -> str | None:
    """Why an objection is accepted; None when it is not."""
    for pattern, where, why in accepted():
        if re.fullmatch(pattern, rule) and re.search(where, place):
            return why
    return None
