import os
import sys
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, complete_node, instance, locate, refuse_on_aws
from holdfast.cli.terminal import CommandError, sudo_command


def ssh(
    node: Annotated[str, typer.Argument(help="Instance id, host name or address.", autocompletion=complete_node)],
    command: Annotated[list[str] | None, typer.Argument(help="Command line, after --. Default: a shell.")] = None,
    user: Annotated[str, typer.Option(help="User on the node.")] = "root",
    environment: Annotated[str | None, ENVIRONMENT] = None,
) -> None:
    """
    Open a shell or run a command on a node.

    Exits with the command's exit code.
    """
    context = locate(environment=environment)
    refuse_on_aws(context, what="holdfast ssh", node=node)
    if os.geteuid() != 0:
        raise CommandError(f"entering a node's namespaces requires root; run: {sudo_command()}")
    target = instance(context, node=node)
    if not target.alive():
        raise CommandError(f"node {node} is not running; see: holdfast status")
    sys.exit(target.exec_tty(command_line(command or []), user=user))


def command_line(words: list[str]) -> list[str]:
    """Join words with spaces into one line for the node's shell, as ssh(1) does."""
    return ["/bin/bash", "-c", " ".join(words)] if words else ["/bin/bash", "-l"]
