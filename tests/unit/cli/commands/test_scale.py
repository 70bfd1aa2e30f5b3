"""``holdfast scale``: what it asks the launcher of a job, and what it says where that cannot be."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.kubernetes import Finished, JobName, PodRecord, Workload
from holdfast.cli.slurm import JobRecord
from holdfast_common import KubernetesError


def record(state: str, *, nodes: str = "ip-10-1-0-[5-8]") -> JobRecord:
    values: dict[str, Any] = dict.fromkeys(JobRecord.__dataclass_fields__, "")
    return JobRecord(**{**values, "job_id": "12", "state": state, "nodes": nodes})


def in_pods(state: str, *phases: str) -> Workload:
    pods = tuple(
        PodRecord(name=f"night-{number}", namespace="team", phase=phase, node="", containers=("prepare", "train"))
        for number, phase in enumerate(phases)
    )
    job = JobName(namespace="team", name="night")
    return Workload(job=job, kinds="Job", state=state, why="", created_s=0, ended_s=None, pods=pods)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A local cluster whose job answers what the test says."""
    made = SimpleNamespace(records=[record("RUNNING")], answer={"refused": ""}, asked=[])

    def run(_context: object, *, node: str, argv: list[str]) -> Any:
        made.asked.append((node, argv[0], argv[-1]))
        return SimpleNamespace(returncode=0, stdout=json.dumps(made.answer), stderr="")

    context = SimpleNamespace(orchestrator="slurm", session=SimpleNamespace(cloud="local"))
    monkeypatch.setattr("holdfast.cli.commands.jobs.scale.locate", lambda **_: context)
    for name, value in {
        "known_jobs": lambda _context, *, jobs: made.records,
        "run": run,
    }.items():
        monkeypatch.setattr(f"holdfast.cli.deployed.sizes.{name}", value)
    return made


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cluster under Kubernetes, on AWS, whose containers answer what the test says."""
    made = SimpleNamespace(job=in_pods("Running", "Pending", "Running", "Running"), answers={}, asked=[])

    def execute(_client: object, *, namespace: str, pod: str, container: str, argv: list[str]) -> Finished:
        made.asked.append((namespace, pod, container, argv[0], argv[-2], argv[-1]))
        answer = made.answers.get((pod, container), Finished(exit_code=0, stdout="", stderr=""))
        if isinstance(answer, KubernetesError):
            raise answer
        return answer

    context = SimpleNamespace(orchestrator="eks", session=SimpleNamespace(cloud="aws"))
    monkeypatch.setattr("holdfast.cli.commands.jobs.scale.locate", lambda **_: context)
    for name, value in {
        "workload": lambda _context, *, job: made.job,
        "sign_in": lambda _context: SimpleNamespace(client=None),
        "execute": execute,
    }.items():
        monkeypatch.setattr(f"holdfast.cli.deployed.sizes.{name}", value)
    return made


def told(refused: str) -> Finished:
    return Finished(exit_code=0, stdout=json.dumps({"refused": refused}), stderr="")


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["scale", *words])
    return done.exit_code, done.output + str(done.exception or "")


def test_the_launcher_on_the_first_node_of_the_job_is_asked(cluster: Any) -> None:
    code, text = said("12", "3")

    assert (code, text) == (0, "job 12: resize requested: 3 nodes; watch with: holdfast events --follow\n")
    assert cluster.asked == [("ip-10-1-0-5", "python3", "scale 3")]


def test_what_the_launcher_refuses_is_said(cluster: Any) -> None:
    cluster.answer = {"refused": "5 nodes are asked for; allowed: 2, 3, 4"}

    assert said("12", "5") == (1, "job 12: 5 nodes are asked for; allowed: 2, 3, 4")


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "Slurm has no job 12"),
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


def test_the_launcher_of_the_first_pod_that_runs_is_asked(pods: Any) -> None:
    pods.answers["night-1", "train"] = told("")

    assert said("team/night", "3") == (
        0,
        "job team/night: resize requested: 3 nodes; watch with: holdfast events --follow\n",
    )
    assert pods.asked == [("team", "night-1", "train", "python3", "", "scale 3")]


def test_containers_without_a_launcher_are_passed_over(pods: Any) -> None:
    pods.answers["night-1", "train"] = KubernetesError(500, "executable file not found")
    pods.answers["night-2", "prepare"] = told("5 nodes are asked for; allowed: 2, 3, 4")

    assert said("team/night", "5") == (1, "job team/night: 5 nodes are asked for; allowed: 2, 3, 4")
    assert [(pod, container) for _, pod, container, *_ in pods.asked] == [
        *(("night-1", "train"), ("night-1", "prepare"), ("night-2", "train"), ("night-2", "prepare"))
    ]


def test_containers_without_a_launcher_are_named_with_what_was_said_of_them(pods: Any) -> None:
    pods.answers["night-2", "prepare"] = KubernetesError(500, "it has ended")

    where = "night-1/train, night-1/prepare, night-2/train, night-2/prepare (it has ended)"
    assert f"no launcher of job team/night answers in {where}; it runs under" in said("team/night", "3")[1]


def test_somebody_elses_job_is_refused_in_the_words_of_the_cluster(pods: Any) -> None:
    pods.answers["night-1", "train"] = KubernetesError(403, "viewer cannot get pods/exec")

    code, text = said("team/night", "3")

    assert code == 1
    assert "job team/night may not be resized by this user: viewer cannot get pods/exec" in text
    assert "the right to get and create pods/exec in namespace team" in text
    assert len(pods.asked) == 1


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (None, "Kubernetes has no job team/night; to list jobs: holdfast jobs"),
        (in_pods("Complete", "Succeeded"), "job team/night is Complete, and only one that runs can change its size"),
        (in_pods("Failed", "Failed", "Running"), "job team/night is Failed"),
        (in_pods("Pending", "Pending"), "job team/night is Pending"),
    ],
)
def test_pods_that_do_not_run_are_refused_before_anybody_is_asked(pods: Any, job: Any, message: str) -> None:
    pods.job = job

    assert message in said("team/night", "3")[1]
    assert pods.asked == []
