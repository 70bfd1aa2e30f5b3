"""Clusters whose Slurm has no accounting, or whose accounting or controller does not answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.deployed import Context, Session, known_jobs
from holdfast.cli.slurm import DELIMITER, SQUEUE_FIELDS
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud

SAID = dict.fromkeys(SQUEUE_FIELDS, "0") | {"JobArrayID": "7", "State": "RUNNING", "Name": "train"}
SQUEUE = "".join(f"{SAID[name]}{DELIMITER}" for name in SQUEUE_FIELDS) + "\n"
DISABLED = (1, "", "Slurm accounting storage is disabled")
GONE = (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")


def cluster(monkeypatch: pytest.MonkeyPatch, **answers: tuple[int, str, str]) -> Context:
    def run(_context: object, *, node: str, argv: list[str], **_: Any) -> Any:
        found = next(answers[program] for program in answers if program in argv)
        return SimpleNamespace(returncode=found[0], stdout=found[1], stderr=found[2])

    monkeypatch.setattr("holdfast.cli.deployed.slurm_jobs.run", run)
    monkeypatch.setattr("holdfast.cli.deployed.slurm_jobs.controller_hostname", lambda _: "head")
    session = Session(
        environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
    )
    return Context(session=session, local=LocalCloud(home=Path("/nowhere"), port=1))


def test_jobs_of_a_cluster_without_accounting_are_those_of_its_controller(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    context = cluster(monkeypatch, sacct=DISABLED, squeue=(0, SQUEUE, ""))
    assert [one.job_id for one in known_jobs(context)] == ["7"]
    assert capsys.readouterr().out == ""


def test_a_job_that_neither_knows_is_unknown_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    invalid = (1, "", "slurm_load_jobs error: Invalid job id specified")
    assert known_jobs(cluster(monkeypatch, sacct=DISABLED, squeue=invalid), jobs=["9"]) == []


def test_accounting_outlives_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_jobs(cluster(monkeypatch, sacct=(0, "", ""), squeue=GONE)) == []


def test_where_neither_answers_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="accounting does not answer: Slurm accounting storage is disabled"):
        known_jobs(cluster(monkeypatch, sacct=DISABLED, squeue=GONE))
