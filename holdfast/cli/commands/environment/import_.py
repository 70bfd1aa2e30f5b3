"""``holdfast import``: an environment file from an existing cluster, or from files of AWS's samples."""

from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli.deployed import recorded
from holdfast.cli.terminal import OUTPUT, CommandError, error_console
from holdfast.localcloud import from_environment

if TYPE_CHECKING:
    from holdfast.importing import Draft, Part

Cloud = Literal["aws", "embedded"]
WHAT = "allowed: exactly one source: --cluster NAME or --config FILE"


def import_cluster(
    cluster: Annotated[str | None, typer.Option(help="Name or ARN of an existing cluster.")] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(help="Cluster definition file (type is detected; repeatable).", show_default=False),
    ] = None,
    provisioning: Annotated[Path | None, typer.Option(help="provisioning_parameters.json of the cluster.")] = None,
    name: Annotated[str | None, typer.Option(help="Cluster name, with files.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS region. Default: that of the AWS configuration.")] = None,
    account: Annotated[str | None, typer.Option(help="AWS account, with files.")] = None,
    cloud: Annotated[Cloud, typer.Option(help="Cloud of the cluster.")] = "aws",
    create: Annotated[
        list[str] | None,
        typer.Option(
            help="Part to create instead of using the existing one: eks, network, roles, scripts, storage; repeatable."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="New file to write. Default: standard output.", rich_help_panel=OUTPUT),
    ] = None,
) -> None:
    """
    Write an environment file for an existing cluster.

    Settings that the file cannot express are listed in its comments.
    """
    files = [*(config or []), *([provisioning] if provisioning is not None else [])]
    if (cluster is None) == (not files):
        raise CommandError(WHAT)
    if output is not None and output.exists():
        raise CommandError(f"got --output {output}, which exists; allowed: a new file")
    parts = _parts(create or [])
    if cluster is not None:
        imported = _from_cluster(cluster, region=region, cloud=cloud, create=parts)
        origin = f"the cluster {cluster}"
    else:
        imported = _from_files(files, name=name, region=region, account=account, create=parts)
        origin = " and ".join(path.name for path in files)
    from holdfast.importing import render

    text = render(imported, origin=origin)
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)
    _tell(imported, output)


def _parts(create: list[str]) -> "Set[Part]":
    from holdfast.importing import PARTS

    wrong = sorted(set(create) - set(PARTS))
    if wrong:
        raise CommandError(f"got --create {', '.join(wrong)}; allowed: {', '.join(PARTS)}")
    return {part for part in PARTS if part in create}


def _from_cluster(cluster: str, *, region: str | None, cloud: Cloud, create: "Set[Part]") -> "Draft":
    import botocore.session
    from botocore.exceptions import ClientError

    from holdfast.importing import from_observed, read_cluster

    session = botocore.session.get_session()
    more: dict[str, Any] = {}
    deployed_in = None
    if cloud == "embedded":
        local = from_environment()
        more, deployed_in = local.client_arguments(), recorded(local.home)
    region = region or _region_in_arn(cluster) or (deployed_in.region if deployed_in else None)
    region = region or session.get_config_variable("region")
    if not region:
        raise CommandError("got no region; allowed: a region of AWS; add --region, such as --region us-west-2")

    def client(service: str) -> Any:
        return session.create_client(service, region_name=region, **more)

    try:
        observed = read_cluster(client, cluster_name=cluster, region=region, embedded=cloud == "embedded")
    except ClientError as error:
        if error.response["Error"]["Code"].startswith("ResourceNotFound"):
            raise CommandError(f"there is no cluster {cluster} in {region}; see: aws sagemaker list-clusters") from None
        raise
    return from_observed(observed, create=create)


def _region_in_arn(cluster: str) -> str | None:
    parts = cluster.split(":")
    return parts[3] if parts[0] == "arn" and len(parts) > 3 else None


def _from_files(
    files: list[Path],
    *,
    name: str | None,
    region: str | None,
    account: str | None,
    create: "Set[Part]",
) -> "Draft":
    import botocore.session

    from holdfast.importing import from_samples
    from holdfast.importing.files import NotUsableError, cluster_of

    try:
        given = cluster_of(files=files, name=name)
    except NotUsableError as error:
        raise CommandError(str(error)) from None
    return from_samples(
        given.request,
        given.provisioning,
        region=region or given.region,
        account=account or given.account,
        likely_region=botocore.session.get_session().get_config_variable("region"),
        create=create,
    )


def _tell(imported: "Draft", output: Path | None) -> None:
    for note in sorted(imported.notes, key=lambda note: not note.decide):
        error_console.print(str(note), style="yellow" if note.decide else "dim", markup=False)
    to_decide = sum(note.decide for note in imported.notes)
    left = len(imported.notes) - to_decide
    error_console.print(
        f"to decide: {to_decide}; remarks: {left}; next: holdfast check {output or 'FILE'}",
        markup=False,
    )
