"""``holdfast logs --job`` while the job waits, runs and ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from holdfast import cli
from holdfast.cli.deployed import Context, Session
from holdfast.localcloud import LocalCloud

PATH = "/fsx/slurm-7.out"
SESSION = Session(
    environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
)


def asked(monkeypatch: pytest.MonkeyPatch, *words: str, outputs: list[list[str] | None], outcomes: list[str]) -> Result:
    """The command for a job whose output and outcome are these, one after the other; the last stays."""
    context = Context(session=SESSION, local=LocalCloud(home=Path("/nowhere"), port=1))
    reads, ends = lasting(outputs), lasting(outcomes)
    monkeypatch.setattr(Context, "orchestrator", "slurm")
    monkeypatch.setattr("holdfast.cli.commands.cluster.logs.POLL_S", 0.0)
    monkeypatch.setattr("holdfast.cli.commands.cluster.logs.locate", lambda **_: context)
    monkeypatch.setattr("holdfast.cli.deployed.logs.output_paths", lambda _context, *, job: [(PATH, "ip-10-1-0-11")])
    monkeypatch.setattr("holdfast.cli.deployed.logs.read_output", lambda _context, *, path, host: next(reads))
    for user in ("commands.cluster.logs", "deployed.logs"):
        monkeypatch.setattr(f"holdfast.cli.{user}.job_outcome", lambda _context, *, job: next(ends))
    return CliRunner().invoke(cli.app, ["logs", "--job", "7", *words])


def test_several_files_are_followed_each_from_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(session=SESSION, local=LocalCloud(home=Path("/nowhere"), port=1))
    files = lasting([["a 1"], ["b 1"], ["a 1", "a 2"], ["b 1"], ["a 1", "a 2"], ["b 1", "b 2"]])
    ends = lasting(["", "", "COMPLETED"])
    monkeypatch.setattr(Context, "orchestrator", "slurm")
    monkeypatch.setattr("holdfast.cli.commands.cluster.logs.POLL_S", 0.0)
    monkeypatch.setattr("holdfast.cli.commands.cluster.logs.locate", lambda **_: context)
    monkeypatch.setattr("holdfast.cli.deployed.logs.output_paths", lambda _context, *, job: [("/a", "h"), ("/b", "h")])
    monkeypatch.setattr("holdfast.cli.deployed.logs.read_output", lambda _context, *, path, host: next(files))
    for user in ("commands.cluster.logs", "deployed.logs"):
        monkeypatch.setattr(f"holdfast.cli.{user}.job_outcome", lambda _context, *, job: next(ends))
    done = CliRunner().invoke(cli.app, ["logs", "--job", "7", "--follow"])

    assert done.stdout.splitlines() == [
        "==> /a <==",
        "a 1",
        "==> /b <==",
        "b 1",
        "==> /a <==",
        "a 2",
        "==> /b <==",
        "b 2",
    ]


def lasting(values: list[Any]) -> Iterator[Any]:
    yield from values
    while True:
        yield values[-1]


def test_a_job_is_followed_from_before_it_begins_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [None, ["one"], ["one", "two"], ["one", "two", "the last"]]
    done = asked(monkeypatch, "--follow", outputs=outputs, outcomes=["", "", "", "", "FAILED"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "one\ntwo\nthe last\n"


def test_a_job_that_has_written_nothing_yet_is_told_from_one_whose_output_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = asked(monkeypatch, outputs=[None], outcomes=[""])
    assert f"job 7 has written nothing to {PATH} yet" in str(waiting.exception)
    gone = asked(monkeypatch, "--follow", outputs=[None], outcomes=["COMPLETED"])
    assert f"job 7 has no output at {PATH}" in str(gone.exception)
