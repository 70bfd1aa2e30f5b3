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


@pytest.mark.parametrize(
    "page", ["README.md", "docs/reference/commands.md", "docs/learn/main-job.md", "docs/do/on-aws.md"]
)
def test_a_command_in_a_block_of_shell_exists_with_its_options(page: str) -> None:
    text = (ROOT / page).read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    used = [words for line in lines if (words := line.partition("#")[0].split()) and words[0] == "holdfast"]
    assert used
    for _, command, *words in used:
        own = words[: words.index("--")] if "--" in words else words
        known = COMMANDS[command]
        unknown = {word.partition("=")[0] for word in own if word.startswith("--")} - known
        assert command == "submit" or not unknown, (command, words)
