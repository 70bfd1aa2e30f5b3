"""
``holdfast check``: errors of an environment or a template before deployment.

Starts no Node, and boto3 only with credentials, so that it can run at every save.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli.definitions import complete_environment
from holdfast.cli.terminal import JSON, OUTPUT, CommandError
from holdfast.environments import NoSuchEnvironmentError, environment_file

if TYPE_CHECKING:
    from holdfast.validation import Finding
    from holdfast.validation.from_environment import Facts

FailOn = Literal["error", "warning", "not-checked"]
Format = Literal["text", "json", "sarif"]
TEMPLATE = "Templates"

CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def check(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Name in environments/, or path of a file, a template or a cdk.out.",
            autocompletion=complete_environment,
        ),
    ],
    fail_on: Annotated[
        FailOn, typer.Option(help="Lowest severity that exits with 1.", rich_help_panel=OUTPUT)
    ] = "error",
    account: Annotated[
        bool | None,
        typer.Option("--account/--offline", help="Check against the AWS account. Default: if credentials exist."),
    ] = None,
    json: Annotated[bool, JSON] = False,
    output: Annotated[
        Format | None, typer.Option("--format", help="Output format. Default: text.", rich_help_panel=OUTPUT)
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(help="Region of the template. Default: any.", metavar="REGION", rich_help_panel=TEMPLATE),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(help="Template parameter; repeatable.", metavar="NAME=VALUE", rich_help_panel=TEMPLATE),
    ] = None,
) -> None:
    """
    Find errors in an environment or a template before deployment.

    Exits with 1 for findings of the --fail-on severity, with 2 for unreadable files.
    """
    path = _path(environment)
    if _is_template(path):
        findings, usable = _check_template(path, region, _pairs(parameters or []))
    elif region or parameters:
        raise CommandError(f"{path}: got --region or --parameters; allowed: with a template; write it into the file")
    else:
        from holdfast.validation.from_environment import check as check_file

        facts = _facts(account)
        describe = None if facts is None else _described
        report = check_file(path, facts=facts, describe=describe, today=date.today())
        findings, usable = report.findings, report.usable
    _print(findings, path=path, output=output or ("json" if json else "text"))
    if not usable:
        raise typer.Exit(2)
    severities: tuple[str, ...] = ("error", "warning", "not-checked")
    if any(severities.index(finding.severity) <= severities.index(fail_on) for finding in findings):
        raise typer.Exit(1)


def _path(name: str) -> Path:
    try:
        return environment_file(name)
    except NoSuchEnvironmentError:
        if Path(name).is_dir():
            return Path(name)
        raise


def _is_template(path: Path) -> bool:
    if path.is_dir():
        return True
    from holdfast.validation.template_files import looks_like_a_template

    return looks_like_a_template(path)


def _check_template(path: Path, region: str | None, parameters: "Mapping[str, str]") -> "tuple[list[Finding], bool]":
    from holdfast.validation.from_template import check_template

    try:
        report = check_template(path, region=region, parameters=parameters, today=date.today())
    except ValueError as error:
        raise CommandError(str(error)) from None
    return report.findings, report.usable


def _pairs(given: "Sequence[str]") -> "Mapping[str, str]":
    found = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise CommandError(f"--parameters: got {each!r}; allowed: NAME=VALUE")
        # The CDK CLI writes STACK:NAME=VALUE.
        found[name.rpartition(":")[2]] = value
    return found


def _facts(account: bool | None) -> "Facts | None":  # noqa: FBT001 - None is the third answer
    file = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials")
    there = any(name in os.environ for name in CREDENTIALS) or file.is_file()
    if account is False or (account is None and not there):
        return None
    from holdfast.validation.from_account import with_facts

    return with_facts


def _described(arn: str) -> Any:
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


def _print(findings: "Sequence[Finding]", *, path: Path, output: Format) -> None:
    from holdfast.cli.findings import as_json, as_sarif, print_findings

    if output == "text":
        print_findings(findings, checked=path)
    else:
        print(as_json(findings, checked=path) if output == "json" else as_sarif(findings, checked=path))
