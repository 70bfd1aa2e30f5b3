"""The page of commands names every command and every option, and no other."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from holdfast import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text()
ROW = re.compile(r"^\| `([a-z][a-z -]*[a-z])[^`]*` \| [^|]+ \|([^|]*)\|$", re.MULTILINE)


def commands(tree: Any, *, name: str = "") -> dict[str, set[str]]:
    if not hasattr(tree, "commands"):
        return {name: {word for one in tree.params for word in (*one.opts, *one.secondary_opts) if word[:2] == "--"}}
    return {
        found: options
        for word, command in tree.commands.items()
        for found, options in commands(command, name=f"{name} {word}".strip()).items()
    }


COMMANDS = commands(typer.main.get_command(cli.app))
ROWS = {name: set(re.findall(r"`(--[a-z-]+)`", options)) for name, options in ROW.findall(PAGE)}


def test_every_command_has_its_row_and_no_other_has() -> None:
    assert ROWS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_row_has_every_option_and_no_other(name: str) -> None:
    assert ROWS[name] == COMMANDS[name]
