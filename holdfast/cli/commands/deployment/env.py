import os
import shlex
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, TARGET, VARIABLE, check_region, kubeconfig_path, locate, recorded
from holdfast.cli.terminal import JSON, CommandError, print_json
from holdfast.localcloud import from_environment


def env(
    region: Annotated[
        str, typer.Option(help="AWS region. Default: that of the deployed environment.", rich_help_panel=TARGET)
    ] = "",
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Print variables for AWS clients and kubectl.

    They point AWS clients at the local cloud, and kubectl at its EKS cluster.
    The keys are those of the whole local cloud.
    With --environment they also select that environment for this shell.
    """
    if region:
        check_region(region)
    local = from_environment()
    of_shell = environment or os.environ.get(VARIABLE)
    session = locate(environment=of_shell).session if of_shell else recorded(local.home)
    if session is not None and session.cloud != "embedded":
        raise CommandError(f"environment {session.environment} is on AWS; its clients use your own credentials")
    if not local.is_claimed():
        raise CommandError(f"nothing is up in {local.home}; start with: holdfast up local")
    variables = local.client_environment(region=region or (session.region if session else "us-west-2"))
    if session is not None:
        kubeconfig = kubeconfig_path(local.home, environment=session.environment)
        variables |= {"KUBECONFIG": str(kubeconfig)} if kubeconfig.exists() else {}
        variables |= {VARIABLE: session.environment} if of_shell else {}
    if json:
        print_json(variables)
        return
    for name, value in variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
