"""What all commands have in common."""

from typing import Any

import typer
from typer.core import TyperCommand

from holdfast.cli.terminal.output import json_alone

FOR_PROGRAMS = ("json", "sarif")


class Command(TyperCommand):
    """A command that has standard output for JSON alone where JSON is asked for."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        if ctx.params.get("json") or ctx.params.get("output") in FOR_PROGRAMS:
            with json_alone():
                return super().invoke(ctx)
        return super().invoke(ctx)
