"""
``holdfast check``: everything that is wrong with an environment or a template, before anything is deployed.

Starts neither Node nor, unless credentials are there, boto3: it is meant to be run at every save.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli._errors import CommandError

if TYPE_CHECKING:
    from holdfast.validation import Finding
    from holdfast.validation.environment import Facts

FailOn = Literal["error", "warning", "not-checked"]

COLOURS = {"error": "bold red", "warning": "yellow", "not-checked": "dim"}
CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def check(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="Name in environments/, or a path: a file, a template, a cdk.out.")
    ],
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 from this severity on.")] = "error",
    account: Annotated[
        bool | None,
        typer.Option("--account/--offline", help="Ask the account too. Default: when there are credentials."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,
) -> None:
    """Find what is wrong with an environment, before anything is deployed."""
    path = _path(environment)
    if _is_template(path):
        findings, usable = _template_findings(path), True
    else:
        from holdfast.validation.environment import check as check_file

        facts = _facts(account)
        report = check_file(path, facts=facts, describe=None if facts is None else _described)
        findings, usable = report.findings, report.usable
    _print(findings, path=path, json=json)
    if not usable:
        raise typer.Exit(2)
    severities: tuple[str, ...] = ("error", "warning", "not-checked")
    if any(severities.index(finding.severity) <= severities.index(fail_on) for finding in findings):
        raise typer.Exit(1)


def _path(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        return path
    from holdfast.cli._up import environment_file

    return environment_file(name)


def _is_template(path: Path) -> bool:
    return path.is_dir() or path.suffix == ".json" or path.name.endswith((".template.yaml", ".template.yml"))


def _template_findings(path: Path) -> "list[Finding]":
    from holdfast.validation import judge, worst_first
    from holdfast.validation._template import deployments

    try:
        described = deployments(path)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not described:
        raise CommandError(f"{path}: no resource of type AWS::SageMaker::Cluster; allowed: a template with one")
    return worst_first(dict.fromkeys(finding for deployment in described for finding in judge(deployment)))


def _facts(account: bool | None) -> "Facts | None":  # noqa: FBT001 - None is the third answer
    file = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials")
    there = any(name in os.environ for name in CREDENTIALS) or file.is_file()
    if account is False or (account is None and not there):
        return None
    from holdfast.validation._account import with_facts

    return with_facts


def _described(arn: str) -> Any:
    """What AWS says now of a cluster that a file was imported from."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from holdfast.validation import UNRESOLVED

    try:
        client = boto3.session.Session(region_name=arn.split(":")[3]).client("sagemaker")
        return client.describe_cluster(ClusterName=arn)
    except ClientError as error:
        return None if error.response["Error"]["Code"].startswith("ResourceNotFound") else UNRESOLVED
    except (BotoCoreError, ValueError):
        return UNRESOLVED


def _print(findings: "Sequence[Finding]", *, path: Path, json: bool) -> None:
    if json:
        from json import dumps

        names = ("code", "severity", "path", "message", "fix")
        print(dumps([{name: getattr(finding, name) for name in names} for finding in findings], indent=2))
        return
    shown = os.path.relpath(path)
    for finding in findings:
        _say(f"{finding.severity} {finding.code}", COLOURS[finding.severity], f" {_place(finding, shown)}")
        print(f"    {finding.message}\n    fix: {finding.fix}")
    print(_summary(findings, shown))


def _place(finding: "Finding", shown: str) -> str:
    """File, line and path; the path of a finding in a template begins with its file."""
    file, _, inside = finding.path.rpartition("#")
    place = os.path.relpath(file) if file else shown
    if finding.line is not None:
        place = f"{place}:{finding.line}"
    return f"{place} {inside}" if inside else place


def _say(marked: str, colour: str, rest: str) -> None:
    if not sys.stdout.isatty():
        print(marked + rest)
        return
    from rich.text import Text

    from holdfast.cli._output import console

    console.print(Text.assemble((marked, colour), rest), soft_wrap=True)


def _summary(findings: "Sequence[Finding]", shown: str) -> str:
    if not findings:
        return f"{shown}: nothing found"
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in COLOURS}
    errors, warnings, unchecked = counts.values()
    return (
        f"{shown}: {errors} {'error' if errors == 1 else 'errors'}, "
        f"{warnings} {'warning' if warnings == 1 else 'warnings'}, {unchecked} not checked; "
        "docs/findings has a page for each code"
    )
