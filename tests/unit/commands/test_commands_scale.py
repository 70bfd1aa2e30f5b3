"""``holdfast scale``: what it asks the launcher of a job, and what it says where that cannot be."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.commands.cluster import scale
from holdfast.cli.slurm import JobRecord


def record(state: str, *, nodes: str = "ip-10-1-0-[5-8]") -> JobRecord:
    values: dict[str, Any] = dict.fromkeys(JobRecord.__dataclass_fields__, "")
    return JobRecord(**{**values, "job_id": "12", "state": state, "nodes": nodes})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A local cluster whose job answers what the test says."""
    made = SimpleNamespace(records=[record("RUNNING")], answer={"refused": ""}, asked=[], orchestrator="slurm")

    def run(_context: object, *, node: str, argv: list[str]) -> Any:
        made.asked.append((node, argv[0], argv[-1]))
        text = "ip-10-1-0-5\nip-10-1-0-6\n" if argv[0] == "scontrol" else json.dumps(made.answer)
        return SimpleNamespace(returncode=0, stdout=text, stderr="")

    context = SimpleNamespace(session=SimpleNamespace(cloud="local"))
    for name, value in {
        "load": lambda: SimpleNamespace(orchestrator=made.orchestrator, **vars(context)),
        "known_jobs": lambda _context, *, jobs: made.records,
        "controller_hostname": lambda _context: "head",
        "run": run,
    }.items():
        monkeypatch.setattr(scale, name, value)
    return made


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["scale", *words])
    return done.exit_code, done.output + str(done.exception or "")


def test_the_launcher_on_the_first_node_of_the_job_is_asked(cluster: Any) -> None:
    code, text = said("12", "3")

    assert (code, text) == (0, "job 12: 3 nodes are asked for; holdfast events shows the change\n")
    assert cluster.asked == [("head", "scontrol", "ip-10-1-0-[5-8]"), ("ip-10-1-0-5", "python3", "scale 3")]


def test_what_the_launcher_refuses_is_said(cluster: Any) -> None:
    cluster.answer = {"refused": "5 nodes are asked for; allowed: 2, 3, 4"}

    assert said("12", "5") == (1, "job 12: 5 nodes are asked for; allowed: 2, 3, 4")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "Slurm knows no job 12"),
        ([record("COMPLETED")], "job 12 is COMPLETED, and only one that runs can change its size"),
        ([record("PENDING", nodes="")], "job 12 is PENDING"),
    ],
)
def test_a_job_that_does_not_run_is_refused_before_anybody_is_asked(
    cluster: Any, records: list[JobRecord], message: str
) -> None:
    cluster.records = records

    assert message in said("12", "3")[1]
    assert cluster.asked == []


def test_a_job_without_a_launcher_is_named(cluster: Any) -> None:
    cluster.answer = None

    assert "no launcher of job 12 answers on ip-10-1-0-5" in said("12", "3")[1]
