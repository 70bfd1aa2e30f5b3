"""``holdfast import``: an environment file from a cluster that is there, or from the files of AWS's samples."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli._errors import CommandError
from holdfast.cli._output import error_console
from holdfast.localcloud import from_environment

if TYPE_CHECKING:
    from holdfast.importing import Imported


def import_cluster(
    cluster: Annotated[str | None, typer.Option(help="Name or ARN of a cluster that is there.")] = None,
    config: Annotated[Path | None, typer.Option(help="A cluster-config.json of AWS's samples.")] = None,
    provisioning: Annotated[Path | None, typer.Option(help="The provisioning_parameters.json beside it.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS region; default: the one of your AWS settings.")] = None,
    account: Annotated[str | None, typer.Option(help="AWS account, with --config.")] = None,
    cloud: Annotated[Literal["aws", "embedded"], typer.Option(help="Where the cluster is.")] = "aws",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new file; default: print it.")] = None,
) -> None:
    """Write an environment file that provisions the same. What it cannot say is in its comments, and listed."""
    if (cluster is None) == (config is None):
        raise CommandError("say what to import: either --cluster NAME, or --config cluster-config.json")
    if output is not None and output.exists():
        raise CommandError(f"{output} is there already; name a new file")
    if cluster is not None:
        imported = _from_cluster(cluster, region=region, cloud=cloud)
        origin = f"the cluster {cluster}"
    else:
        imported = _from_files(config, provisioning, region=region, account=account)
        origin = " and ".join(path.name for path in (config, provisioning) if path is not None)
    from holdfast.importing import render

    text = render(imported, origin=origin)
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)
    _tell(imported, text, output)


def _from_cluster(cluster: str, *, region: str | None, cloud: Literal["aws", "embedded"]) -> "Imported":
    import botocore.session
    from botocore.exceptions import ClientError

    from holdfast.importing import from_observed, read_cluster

    session = botocore.session.get_session()
    region = region or session.get_config_variable("region")
    if not region:
        raise CommandError("no region is set; add --region, such as --region us-west-2")
    more: dict[str, Any] = {}
    if cloud == "embedded":
        endpoint = from_environment().endpoint
        more = {"endpoint_url": endpoint, "aws_access_key_id": "holdfast", "aws_secret_access_key": "holdfast"}

    def client(service: str) -> Any:
        return session.create_client(service, region_name=region, **more)

    try:
        return from_observed(read_cluster(client, cluster_name=cluster, region=region, embedded=cloud == "embedded"))
    except ClientError as error:
        if error.response["Error"]["Code"].startswith("ResourceNotFound"):
            raise CommandError(f"there is no cluster {cluster} in {region}; see: aws sagemaker list-clusters") from None
        raise


def _from_files(
    config: Path | None, provisioning: Path | None, *, region: str | None, account: str | None
) -> "Imported":
    from holdfast.importing import from_samples

    assert config is not None
    legacy = None if provisioning is None else _json(provisioning)
    request = _json(config)
    for key in ("ClusterName", "InstanceGroups"):
        if key not in request:
            raise CommandError(f"{config} has no {key}: it is no request of CreateCluster")
    return from_samples(request, legacy, region=region, account=account)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except json.JSONDecodeError as error:
        raise CommandError(f"{path}:{error.lineno}: no JSON: {error.msg.lower()}") from None
    if not isinstance(found, dict):
        raise CommandError(f"{path} holds no object of settings")
    return found


def _tell(imported: "Imported", text: str, output: Path | None) -> None:
    """On standard error: what was left behind, what has to be decided, and whether the file can be read."""
    for note in sorted(imported.notes, key=lambda note: not note.decide):
        error_console.print(str(note), style="yellow" if note.decide else "dim", markup=False)
    problems = _problems(text)
    for problem in problems:
        error_console.print(problem, style="red", markup=False)
    to_decide = sum(note.decide for note in imported.notes)
    left = len(imported.notes) - to_decide
    error_console.print(
        f"to decide: {to_decide + len(problems)}; not carried over: {left}; next: holdfast check {output or 'FILE'}",
        markup=False,
    )


def _problems(text: str) -> list[str]:
    from holdfast.config import EnvironmentFileError, load

    with TemporaryDirectory() as folder:
        path = Path(folder, "imported.yaml")
        path.write_text(text)
        try:
            load(path)
        except EnvironmentFileError as error:
            return [f"{each.path}: got {each.given}; allowed: {each.allowed}; {each.fix}" for each in error.problems]
    return []
