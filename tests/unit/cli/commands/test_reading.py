"""A command reads the environment file that it speaks of once."""

import pkgutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.terminal import CommandError
from holdfast.config import Environment

LOADER = "holdfast.config.reading.document._loader"
FAR_ENOUGH = "up deploys"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, int]:
    """How often a file was parsed, and how often made an environment; nothing is deployed meanwhile."""
    counts = {"parsed": 0, "validated": 0}
    make_loader, validate = pkgutil.resolve_name(LOADER), Environment.model_validate

    def parsing(text: str, name: str) -> Any:
        counts["parsed"] += 1
        return make_loader(text, name)

    def validating(data: Any) -> Environment:
        counts["validated"] += 1
        return validate(data)

    def deploy(*_: object, **__: object) -> None:
        raise CommandError(FAR_ENOUGH)

    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setattr(LOADER, parsing)
    monkeypatch.setattr(Environment, "model_validate", validating)
    monkeypatch.setattr("holdfast.cli.commands.deployment.up.deploy", deploy)
    monkeypatch.setattr(
        "holdfast.cli.commands.environment.diff._read_deployed",
        lambda wanted: SimpleNamespace(environment=wanted.model_dump(mode="json"), stack_status=""),
    )
    return counts


@pytest.mark.parametrize("words", [("check", "--offline"), ("diff",), ("plan", "--runs", "2"), ("up",)], ids=" ".join)
def test_an_environment_file_is_parsed_once(words: tuple[str, ...], counted: dict[str, int]) -> None:
    command, *options = words

    done = CliRunner().invoke(cli.app, [command, "slurm-p5", *options])

    assert done.exit_code == 0 or str(done.exception) == FAR_ENOUGH, done.output
    assert counted == {"parsed": 1, "validated": 1}
