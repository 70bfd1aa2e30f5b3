import sys
from typing import Annotated

import typer

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    Context,
    attach,
    complete_node,
    forward_port,
    locate,
    relay,
)
from holdfast.cli.terminal import CommandError, error_console


def ssh(
    node: Annotated[str, typer.Argument(help="Instance id, host name or address.", autocompletion=complete_node)],
    command: Annotated[list[str] | None, typer.Argument(help="Command line, after --. Default: a shell.")] = None,
    user: Annotated[str, typer.Option(help="User on the node.")] = "root",
    stdio: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Connect standard input and output to a port of the node, for ProxyCommand of OpenSSH.",
        ),
    ] = None,
    forward: Annotated[
        str | None,
        typer.Option("--forward", "-L", metavar="[LOCAL:]PORT", help="Forward a port of this machine to the node."),
    ] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """
    Open a shell or run a command on a node.

    Exits with the command's exit code.
    """
    if sum(map(bool, (command, stdio, forward))) > 1:
        raise CommandError("got several of a command, --stdio and --forward; allowed: one of them")
    ports = None if forward is None else parse_forward(forward)
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if stdio is not None:
        relay(context, node=node, port=stdio, source=0, sink=1)
    elif ports is not None:
        _forward(context, node=node, local=ports[0], port=ports[1])
    else:
        sys.exit(attach(context, node=node, argv=command_line(command or []), user=user))


def command_line(words: list[str]) -> list[str]:
    """Join words with spaces into one line for the node's shell, as ssh(1) does."""
    return ["/bin/bash", "-c", " ".join(words)] if words else ["/bin/bash", "-l"]


def parse_forward(text: str) -> tuple[int, int]:
    """Return (local port, port of the node). Raises: CommandError."""
    local, colon, port = text.rpartition(":")
    numbers = [local if colon else port, port]
    if not all(one.isascii() and one.isdigit() and int(one) <= 65535 for one in numbers) or not int(port):
        raise CommandError(f"got --forward {text!r}; allowed: PORT or LOCAL:PORT, such as 8080:80; LOCAL 0 picks one")
    return int(numbers[0]), int(numbers[1])


def _forward(context: Context, *, node: str, local: int, port: int) -> None:
    with forward_port(context, node=node, local=local, port=port) as listening:
        error_console.print(f"localhost:{listening.port} leads to port {port} of {node}; end with Ctrl-C")
        for problem in listening.problems():
            error_console.print(problem, style="yellow")
