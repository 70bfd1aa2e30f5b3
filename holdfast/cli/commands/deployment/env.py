"""``holdfast env``: the local cloud's address and keys, for clients that are not the holdfast command."""

import os
import shlex
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, VARIABLE, check_region, kubeconfig_path, locate, recorded
from holdfast.cli.terminal import CommandError, print_json
from holdfast.localcloud import from_environment


def env(
    region: Annotated[str, typer.Option(help="AWS region. Default: that of the environment that is up.")] = "",
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the variables as JSON.")] = False,
) -> None:
    """
    Print what points an AWS client at the local cloud, and kubectl at its cluster of EKS.

    For a shell: eval "$(holdfast env)". The keys in it are those of the whole local cloud. With --environment the
    shell's other holdfast commands use that environment too.
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
