"""No value of any option of any command is a traceback: what is wrong is said in words, and nothing is done."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from holdfast import cli

TREE = typer.main.get_command(cli.app)
BASE: dict[str, list[str]] = {
    "check": ["minimal"],
    "diff": ["minimal"],
    "plan": ["--instances", "4", "--instance-type", "ml.p5.48xlarge", "--runs", "10"],
    "up": ["nowhere"],
    "submit": ["JOB"],
    "rehearse": ["JOB"],
    "ssh": ["i-1"],
    "kill-node": ["i-1"],
    "inject": ["i-1", "hung-driver"],
    "cancel": ["7"],
    "kubernetes build": ["--from", "/nowhere"],
    "images build": ["--containers", "/nowhere"],
    "images add": ["docker-archive:/nowhere", "name"],
    "images remove": ["name"],
}
"""What a command needs beside the option that is tried: nothing of it lets a command begin to do something."""
LONG = "a" * 5000
NUMBERS = ("-1", "nan", "0", "9" * 23, "inf", "")
PATHS = (LONG, "\udcff", "", "/", "/nowhere/at/all", "/dev/null", "-", "~x")
TEXTS = ("\udcff", LONG, "", "-", "-1", "[/x]", "[red]", "a=b", "../..", "*", "\n", "1;2", "arn:", "arn:aws:s3:::x")


def commands(tree: Any = TREE, *, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, by the words that call it."""
    if hasattr(tree, "commands"):
        for word, command in tree.commands.items():
            yield from commands(command, name=f"{name} {word}".strip())
    else:
        yield name, tree


def values(option: Any) -> tuple[str, ...]:
    kind = repr(option.type_descriptor).lower()
    if "int" in kind or "float" in kind:
        return NUMBERS
    return PATHS if "path" in kind else TEXTS


@pytest.fixture
def nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home in which nothing runs, and a job file."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # where options that name a file may write one
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    job = tmp_path / "job.sbatch"
    job.write_text("#!/bin/sh\n")
    yield job
    for number, handler in handlers.items():
        signal.signal(number, handler)


def ends_with(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a call; anything but an exit is the caller's failure."""
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def try_values(
    name: str, job: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, most: int
) -> None:
    command = dict(commands())[name]
    base = [str(job) if word == "JOB" else word for word in BASE.get(name, [])]
    for option in (one for one in command.params if one.opts[0].startswith("-") and one.name != "help"):
        given = [[]] if option.is_flag else [[value] for value in values(option)[:most]]
        for value in given:
            words = [*name.split(), *base, option.opts[0], *value]
            assert ends_with(words, monkeypatch) in (0, 1, 2), words
            assert "Traceback" not in capfd.readouterr().err, words


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_no_value_of_an_option_is_a_traceback(
    name: str, nothing_up: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    try_values(name, nothing_up, monkeypatch, capfd, most=2)


@pytest.mark.e2e
@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_none_of_many_values_is_a_traceback(
    name: str, nothing_up: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    try_values(name, nothing_up, monkeypatch, capfd, most=99)
