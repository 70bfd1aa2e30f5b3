from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.definitions import complete_environment, read_definition
from holdfast.cli.deploying import ROLLED_BACK, STUCK, stuck
from holdfast.cli.terminal import JSON, CommandError, console, error_console, print_json
from holdfast.cli.views import plain_change, render_changes
from holdfast.environments import environment_file
from holdfast.localcloud import from_environment

if TYPE_CHECKING:
    from holdfast.config import Environment
    from holdfast.importing import DeployedStack


def diff(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="Name in environments/, or path.", autocompletion=complete_environment)
    ],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW", help="Compare ENV with this file, not with AWS.", autocompletion=complete_environment
        ),
    ] = "",
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Show what deploying an environment would change.

    Exits with 1 where a change is refused, with 2 where nothing is deployed.
    """
    from holdfast.updates import compare, guard

    desired = read_definition(environment_file(new or environment))
    before = read_definition(environment_file(environment)).model_dump(mode="json") if new else _deployed(desired)
    for remark in () if new else _moved(before, desired):
        error_console.print(remark, style="yellow")
    changes = compare(before, desired)
    problems = guard(desired, before)
    if json:
        print_json({"stack": desired.stack_name, "changes": [plain_change(change) for change in changes],
                    "problems": [asdict(problem) for problem in problems]})  # fmt: skip
    else:
        console.print(render_changes(desired.stack_name, changes, problems))
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(1)


def _deployed(desired: "Environment") -> Mapping[str, Any]:
    deployed, stack = _read_deployed(desired), desired.stack_name
    if deployed.stack_status == STUCK:
        raise CommandError(f"stack {stack} is in {STUCK}: {stuck(stack)}")
    if deployed.environment is None:
        raise CommandError(_nothing_to_compare(deployed))
    if deployed.stack_status == ROLLED_BACK:
        error_console.print(f"stack {stack} is in {ROLLED_BACK}: the last update failed, this compares with before it")
    return deployed.environment


def _moved(before: Mapping[str, Any], desired: "Environment") -> list[str]:
    from holdfast.importing import count_remarks, live_counts

    client = from_environment().client_arguments() if desired.cloud == "embedded" else None
    live = live_counts(cluster_name=desired.cluster_name, region=desired.region, client=client)
    return count_remarks(before, desired.model_dump(mode="json"), live)


def _read_deployed(desired: "Environment") -> "DeployedStack":
    from holdfast.importing import deployed_environment

    client = from_environment().client_arguments() if desired.cloud == "embedded" else None
    return deployed_environment(stack_name=desired.stack_name, region=desired.region, client=client, timeout_s=10.0)


def _nothing_to_compare(deployed: "DeployedStack") -> str:
    if deployed.state == "absent":
        return f"{deployed.why}; everything in the file is new"
    if deployed.state == "unmarked":
        return f"not checked: {deployed.why}; the next deployment that changes a resource makes it comparable"
    return f"not checked: {deployed.why}"
