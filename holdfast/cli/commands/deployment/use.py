import os
from typing import Annotated

import typer

from holdfast.cli.definitions import complete_environment
from holdfast.cli.deployed import VARIABLE, AwsError, environments, locate
from holdfast.cli.terminal import CommandError, console


def use(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            help="Deployed environment, name in environments/, or path.",
            autocompletion=complete_environment,
        ),
    ],
) -> None:
    """
    Select the environment that other commands use.

    --environment and $HOLDFAST_ENVIRONMENT take precedence.
    """
    from holdfast.importing import NOTHING_DEPLOYED

    context = locate(environment=environment)
    session, home = context.session, context.local.home
    try:
        status = str(context.describe_stack()["StackStatus"])
    except AwsError as error:
        if "does not exist" not in error.message:
            raise
        status = ""
    if not status or status in NOTHING_DEPLOYED:
        seen = f"is in {status}" if status else f"does not exist in {session.region}"
        others = ", ".join(name for name in environments(home) if name != session.environment) or "none"
        raise CommandError(
            f"{session.environment} is gone: stack {session.stack_name} {seen}; other deployed ones: {others}; "
            f"deploy it with: holdfast up {environment}"
        )
    with context.local.held(verb="use"):
        session.save(home=home)
    console.print(
        f"current: {session.environment} (cluster {session.cluster_name} in {session.region}, stack {status})",
        highlight=False,
    )
    of_shell = os.environ.get(VARIABLE)
    if of_shell and of_shell != session.environment:
        console.print(f"this shell has {VARIABLE}={of_shell}, which takes precedence; to clear it: unset {VARIABLE}")
