"""Commands: JSON alone on standard output, and parameters from the fields of a model."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from holdfast.cli.terminal.output import json_alone

FOR_PROGRAMS = ("json", "sarif")
OUTPUT, FILTER = "Output", "Filters"
"""Panels of options in the help texts."""
JSON = typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)
FOLLOW = typer.Option("--follow", "-f", help="Wait for more, until a job ends.", rich_help_panel=OUTPUT)
SINCE = typer.Option("--since", metavar="TIME", help="Start: 2026-11-22T18:00, 30m, 2h, 1d.", rich_help_panel=FILTER)
TAIL = typer.Option(
    "--tail", help="Number of newest events, or of last lines of each file.", min=0, rich_help_panel=FILTER
)
T = TypeVar("T")


class Command(TyperCommand):
    """Command whose standard output is JSON alone with --json."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        if ctx.params.get("json") or ctx.params.get("output") in FOR_PROGRAMS:
            with json_alone():
                return super().invoke(ctx)
        return super().invoke(ctx)


def command_of(model: type[T], run: Callable[[T], None]) -> Callable[..., None]:
    """
    Return a command whose parameters are the fields of a dataclass.

    Args:
        model: Fields annotated with options and arguments of typer.
        run: Receives the values; its docstring is the help text.
    """

    def command(**given: Any) -> None:
        run(model(**given))

    command.__doc__ = run.__doc__
    command.__name__ = run.__name__.lstrip("_")
    command.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]
    return command
