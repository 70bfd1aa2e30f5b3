"""``holdfast use``: the environment that the other commands use."""

import os
from typing import Annotated

import typer

from holdfast.cli.deployed import VARIABLE, AwsError, environments, locate
from holdfast.cli.terminal import CommandError, console


def use(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="One that is up, a name in environments/, or a path.")
    ],
) -> None:
    """Make a deployed environment the current one; --environment and $HOLDFAST_ENVIRONMENT still come first."""
    context = locate(environment=environment)
    session, home = context.session, context.local.home
    try:
        status = context.describe_stack()["StackStatus"]
    except AwsError as error:
        if "does not exist" not in error.message:
            raise
        others = ", ".join(name for name in environments(home) if name != session.environment) or "none"
        raise CommandError(
            f"{session.environment} is gone: stack {session.stack_name} does not exist in {session.region}; "
            f"others that were deployed: {others}; deploy it again with: holdfast up {environment}"
        ) from None
    session.save(home=home)
    console.print(
        f"current: {session.environment} (cluster {session.cluster_name} in {session.region}, stack {status})",
        highlight=False,
    )
    of_shell = os.environ.get(VARIABLE)
    if of_shell and of_shell != session.environment:
        console.print(f"this shell has {VARIABLE}={of_shell}, which comes first; to end that: unset {VARIABLE}")
