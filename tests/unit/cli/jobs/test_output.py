"""``holdfast logs --job`` while the job waits, runs and ends."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from accounting import sacct_line
from typer.testing import CliRunner, Result

from holdfast import cli
from holdfast.cli.deployed import Context, Session, lifecycle_stream
from holdfast.cli.slurm import JobRecord, parse_sacct
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud

PATH = "/fsx/slurm-7.out"
SESSION = Session(
    environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
)


def asked(
    monkeypatch: pytest.MonkeyPatch,
    *words: str,
    outputs: list[list[str] | None],
    outcomes: list[str],
    known: Sequence[JobRecord] = (),
    target: Sequence[str] = ("--job", "7"),
) -> Result:
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
    for user in ("logs", "slurm_jobs"):
        monkeypatch.setattr(f"holdfast.cli.deployed.{user}.known_jobs", lambda _context, *, jobs: known)
    return CliRunner().invoke(cli.app, ["logs", *target, *words])


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
    monkeypatch.setattr("holdfast.cli.deployed.slurm_jobs.known_jobs", lambda _context, *, jobs: [])
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
    assert f"job 7 has no output at {PATH}: no file of that name exists" in str(gone.exception)


def test_the_output_of_a_refused_job_is_missing_because_it_never_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    known = parse_sacct(sacct_line(State="FAILED", NodeList="None assigned", ExitCode="1:0"))
    refused = asked(monkeypatch, outputs=[None], outcomes=["FAILED"], known=known)
    assert (
        str(refused.exception) == f"job 7 has no output at {PATH}: never ran: sbatch refused it and printed the reason"
    )


@pytest.mark.parametrize(
    ("job_id", "said"),
    [
        ("2_1", "job 7 is task 2_1\n"),
        ("7_1", ""),
        ("7", ""),
        ("2+1", "job 7 is task 2+1\n"),
        ("71_0", "job 7 is task 71_0\n"),
    ],
)
def test_the_number_of_a_task_is_shown_with_its_array(monkeypatch: pytest.MonkeyPatch, job_id: str, said: str) -> None:
    known = parse_sacct(sacct_line(JobID=job_id, JobIDRaw="7"))
    done = asked(monkeypatch, outputs=[["one"]], outcomes=["COMPLETED"], known=known)
    assert (done.stdout, done.stderr) == ("one\n", said)


def test_a_number_in_place_of_a_node_is_taken_for_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    known = parse_sacct(sacct_line(JobID="7", JobIDRaw="7"))
    done = asked(monkeypatch, outputs=[["one"]], outcomes=["COMPLETED"], known=known, target=["7"])
    assert (done.stdout, done.stderr) == ("one\n", "")


def test_a_node_without_a_log_has_those_named_that_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.deployed.logs.lifecycle_streams", lambda _: [("g", "workers/i-1")])
    monkeypatch.setattr("holdfast.cli.deployed.logs.instance_id_of", lambda _, *, node: node)
    context: Any = None
    with pytest.raises(CommandError, match=r"instances with one: i-1$"):
        lifecycle_stream(context, node="ip-10-1-0-9")
