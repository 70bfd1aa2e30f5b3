"""Help texts: one line for each verb in a panel of its purpose, and an example that can be typed."""

import shlex
from typing import Any

import pytest
import typer

from holdfast import cli
from local_tables import commands

WIDTH = 64
"""Columns beside the longest verb on a terminal of 80."""


TREE: Any = typer.main.get_command(cli.app)
COMMANDS = dict(commands(TREE))


@pytest.mark.parametrize("verb", sorted(TREE.commands))
def test_a_verb_has_one_line_in_a_panel(verb: str) -> None:
    first = TREE.commands[verb].help.partition("\n\n")[0]

    assert TREE.commands[verb].rich_help_panel
    assert len(first) <= WIDTH
    assert "\n" not in first
    assert first.endswith(".")


@pytest.mark.parametrize("names", sorted(COMMANDS), ids=" ".join)
def test_a_command_has_an_example_with_options_that_it_has(names: tuple[str, ...]) -> None:
    command = COMMANDS[names]
    words = shlex.split(command.epilog.removeprefix("Example: ").removeprefix('eval "$(').removesuffix(')"'))
    words = words[words.index("holdfast") + 1 :]
    own = words[: words.index("--")] if "--" in words else words
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}

    assert tuple(words[: len(names)]) == names
    assert names == ("submit",) or {word for word in own if word.startswith("-")} <= known
