"""``holdfast diff``: what deploying an environment file would do to what is deployed, before it is deployed."""

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.cli._errors import CommandError
from holdfast.cli._output import console, print_json
from holdfast.cli._up import environment_file
from holdfast.localcloud import from_environment

if TYPE_CHECKING:
    from holdfast.config import Environment
    from holdfast.importing import Deployed
    from holdfast.validation.updates import Change, GuardProblem

LONGEST_VALUE = 40


def diff(
    environment: Annotated[str, typer.Argument(help="Name of a file in environments/, or the path of one.")],
    json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """
    Say what deploying an environment would change. Nothing is deployed.

    Exits with 0 when it may be deployed, 1 when a change is refused or not allowed, 2 when there is nothing to
    compare with.
    """
    from holdfast.config import EnvironmentFileError, load
    from holdfast.validation.updates import compare, guard

    try:
        wanted = load(environment_file(environment))
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None
    deployed = _ask(wanted)
    if deployed.environment is None:
        raise CommandError(_nothing_to_compare(deployed))
    changes = compare(deployed.environment, wanted)
    problems = guard(wanted, deployed.environment)
    if json:
        print_json({"stack": wanted.stack_name, "changes": [_plain(change) for change in changes],
                    "problems": [asdict(problem) for problem in problems]})  # fmt: skip
    else:
        console.print(render(wanted.stack_name, changes, problems))
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(1)


def render(stack_name: str, changes: "list[Change]", problems: "list[GuardProblem]") -> Group:
    """The table for people, and one line that sums it up."""
    from holdfast.validation.updates import ALLOW_REPLACEMENT

    parts: list[Any] = [_table(changes), Text()] if changes else []
    own = (problem for problem in problems if problem.path == ALLOW_REPLACEMENT)
    parts += [Text(str(problem), style="red" if problem.severity == "error" else "yellow") for problem in own]
    blocked = sum(change.blocked for change in changes)
    if not changes:
        parts.append(Text(f"{stack_name} is as the file says", style="green"))
    elif blocked:
        parts.append(Text(f"{blocked} of {_counted(len(changes))} must not be deployed", style="bold red"))
    else:
        parts.append(Text(f"{_counted(len(changes))}, nothing forbids to deploy", style="green"))
    return Group(*parts)


def _table(changes: "list[Change]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for column, ratio in (
        ("setting", 4),
        ("deployed", 2),
        ("file", 2),
        ("what happens", 2),
        ("why", 4),
        ("what to do", 4),
    ):
        table.add_column(column, overflow="fold", ratio=ratio)
    for change in changes:
        table.add_row(
            change.path,
            _shown(change.old),
            _shown(change.new),
            _effect(change),
            change.reason,
            _to_do(change),
        )
    return table


def _effect(change: "Change") -> Text:
    if change.blocked:
        return Text(change.effect.words, style="bold red")
    words = f"{change.effect.words}, allowed" if change.effect.needs_leave else change.effect.words
    return Text(words, style="yellow" if change.effect.disturbs else "green")


def _to_do(change: "Change") -> str:
    allow = (
        f"to allow it, add {change.path} to allow_replacement" if change.blocked and change.effect.needs_leave else ""
    )
    return "; ".join(part for part in (change.action, allow) if part)


def _counted(changes: int) -> str:
    return f"{changes} change{'s' if changes != 1 else ''}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict) and "name" in value:
        return "there"
    text = value if isinstance(value, str) else json_format.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _plain(change: "Change") -> dict[str, Any]:
    return {**asdict(change), "effect": change.effect.words, "blocked": change.blocked}


def _ask(wanted: "Environment") -> "Deployed":
    from holdfast.importing import deployed_environment

    client = from_environment().client_arguments() if wanted.cloud == "embedded" else None
    return deployed_environment(stack_name=wanted.stack_name, region=wanted.region, client=client, timeout_s=10.0)


def _nothing_to_compare(deployed: "Deployed") -> str:
    if deployed.state == "absent":
        return f"{deployed.why}; everything in the file is new"
    if deployed.state == "unmarked":
        return f"not checked: {deployed.why}; the next deployment that changes a resource makes it comparable"
    return f"not checked: {deployed.why}"
