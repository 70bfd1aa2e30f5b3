"""Which cluster a command speaks of, and what is refused for one on AWS before anything is touched."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli import deployed
from holdfast.cli.deployed import AwsError, Context, locate
from holdfast.cli.terminal import CommandError
from holdfast.environments import NoSuchEnvironmentError

ARN = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abc123def456"
CLUSTER = {
    "ClusterArn": ARN,
    "ClusterName": "prod",
    "ClusterStatus": "InService",
    "InstanceGroups": [
        {"InstanceGroupName": "head", "SlurmConfig": {"NodeType": "Controller"}},
        {"InstanceGroupName": "workers", "SlurmConfig": {"NodeType": "Compute"}},
    ],
}
NODES = [
    {
        "InstanceGroupName": group,
        "InstanceId": f"i-{number}",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceStatus": {"Status": "Running"},
        "PrivateDnsHostname": f"ip-10-1-0-{number}.us-east-2.compute.internal",
    }
    for number, group in ((5, "workers"), (4, "head"), (6, "group-that-is-gone"))
]
EVENT = {
    "EventId": "e",
    "EventTime": datetime(2026, 11, 22, 18, 0, tzinfo=UTC),
    "InstanceId": "i-5",
    "InstanceGroupName": "workers",
    "ResourceType": "Instance",
    "EventLevel": "Warn",
    "Description": "Replacing i-5",
}
ANSWERS: dict[str, Callable[[], Any]] = {
    "DescribeCluster": lambda: CLUSTER,
    "ListClusterNodes": lambda: {"ClusterNodeSummaries": NODES},
    "ListTags": lambda: {"Tags": []},
    "ListClusterEvents": lambda: {"Events": [EVENT]},
}


def refused() -> Any:
    raise AwsError(code="AccessDeniedException", message="not authorized to perform: ssm:StartSession")


ANSWERS["StartSession"] = refused


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str]]:
    """AWS, which answers questions and is told nothing; every question, with the region it went to."""
    seen: list[tuple[str, str]] = []

    def ask(self: Context, service: str, operation: str, **parameters: Any) -> Any:
        seen.append((self.session.region, operation))
        return ANSWERS[operation]()

    def client(self: Context, service: str) -> Any:
        raise AssertionError(f"a client of {service} was made")

    monkeypatch.setattr(Context, "ask", ask)
    monkeypatch.setattr(Context, "client", client)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return seen


def session_on_aws(tmp_path: Path) -> None:
    home = tmp_path / "home"
    deployed.Session(
        environment="prod", cloud="aws", region="us-east-2", stack_name="", cluster_name="prod", port=0
    ).save(home=home)


@pytest.mark.parametrize("name", ["prod", ARN])
def test_any_machine_that_may_ask_aws_sees_a_cluster_and_what_it_cannot_see(
    name: str, asked: list[tuple[str, str]]
) -> None:
    done = CliRunner().invoke(cli.app, ["status", "--cluster", name, "--region", "us-east-2", "--json"])
    assert done.exit_code == 0, done.output
    view = json.loads(done.stdout)
    assert [node["instance_id"] for node in view["nodes"]] == ["i-4", "i-5", "i-6"]
    assert view["unseen"][0].startswith("Slurm's nodes and jobs: sessions to node ip-10-1-0-4 are refused")
    assert {region for region, _ in asked} == {"us-east-2"}


def test_events_on_aws_are_hyperpods_own_and_said_to_be(asked: list[tuple[str, str]]) -> None:
    done = CliRunner().invoke(cli.app, ["events", "--cluster", ARN, "--json", "--since", "2026-11-22"])
    assert json.loads(done.stdout)["description"] == "Replacing i-5"
    assert "HyperPod's own events" in done.stderr
    shown = CliRunner().invoke(cli.app, ["events", "--cluster", ARN]).stdout
    assert shown == "2026-11-22 18:00:00  Warn   Instance workers i-5  Replacing i-5\n"


@pytest.mark.parametrize("option", ["--kind", "--job"])
def test_what_hyperpods_events_do_not_have_is_refused(option: str, asked: list[tuple[str, str]]) -> None:
    done = CliRunner().invoke(cli.app, ["events", "--cluster", ARN, option, "7"])
    assert f"got {option}; on AWS" in str(done.exception)
    assert asked == []


@pytest.mark.parametrize(
    ("words", "node"),
    [
        (["submit", "JOB", "--environment", "prod"], ""),
        (["jobs"], "head-i-4"),
        (["cancel", "7"], "head-i-4"),
        (["scale", "7", "2"], "head-i-4"),
        (["logs", "--job", "7"], "head-i-4"),
        (["why", "7"], "head-i-4"),
        (["ssh", "i-5", "--", "uptime"], "workers-i-5"),
        (["ssh", "ip-10-1-0-5"], "workers-i-5"),
        (["ssh", "ip-10-1-0-5", "--stdio", "22"], "workers-i-5"),
    ],
)
def test_a_verb_begins_a_session_to_its_node_and_says_which_rights_it_lacks(
    words: list[str], node: str, asked: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_on_aws(tmp_path)
    targets: list[str] = []

    def ask(self: Context, service: str, operation: str, **parameters: Any) -> Any:
        targets.extend([parameters["Target"]] if "Target" in parameters else [])
        return ANSWERS[operation]()

    monkeypatch.setattr(Context, "ask", ask)
    monkeypatch.setattr("holdfast.cli.submission.job_files.jobs_prefix", lambda _: ("bucket", "jobs", "/fsx/jobs"))
    job = tmp_path / "job" / "a.sbatch"
    job.parent.mkdir()
    job.write_text("#!/bin/sh\n")
    done = CliRunner().invoke(cli.app, [str(job) if word == "JOB" else word for word in words])
    assert isinstance(done.exception, CommandError)
    assert "not authorized to perform: ssm:StartSession; required: the rights of docs/do/on-aws.md" in str(
        done.exception
    )
    assert set(targets) == {f"sagemaker-cluster:abc123def456_{node or 'head-i-4'}"}


@pytest.mark.parametrize(
    "words", [["kill-node", "i-5"], ["inject", "i-5", "xid-79"], ["rehearse", "JOB"], ["packages", "REQUIREMENTS"]]
)
def test_what_only_the_local_hyperpod_has_is_refused_and_nothing_is_touched(
    words: list[str], asked: list[tuple[str, str]], tmp_path: Path
) -> None:
    session_on_aws(tmp_path)
    names = {"JOB": "a.sbatch", "REQUIREMENTS": "requirements.txt"}
    for name in names.values():
        (tmp_path / name).write_text("#!/bin/sh\n")
    done = CliRunner().invoke(cli.app, [str(tmp_path / names[word]) if word in names else word for word in words])
    assert f"holdfast {words[0]} works on the local HyperPod alone, and prod is a cluster on AWS" in str(done.exception)
    assert asked == []


def test_a_node_that_is_not_there_is_refused_with_those_that_are(asked: list[tuple[str, str]], tmp_path: Path) -> None:
    session_on_aws(tmp_path)
    done = CliRunner().invoke(cli.app, ["ssh", "i-9"])
    assert str(done.exception) == "cluster prod has no node 'i-9'; its nodes: i-4, i-5, i-6"


def test_an_environment_file_names_its_cluster(asked: list[tuple[str, str]], repository: Path) -> None:
    context = locate(
        environment=str(repository / "environments/slurm-p5.yaml"), cluster=None, region=None, profile="team"
    )
    session = context.session
    assert (session.cloud, session.profile) == ("aws", "team")
    assert session.cluster_name in session.stack_name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"environment": "slurm-p5", "cluster": "prod"}, "one of them"),
        ({"environment": "slurm-p5", "region": "eu-west-9"}, "leave --region out"),
        ({"environment": "local", "profile": "team"}, "of the local cloud, which has neither"),
        ({"environment": "nowhere"}, "there is no environment 'nowhere'"),
        ({"cluster": "a_b"}, "allowed: the name or the ARN"),
        ({"cluster": ARN, "region": "us-west-2"}, "an ARN of us-east-2, leave --region out"),
        ({"cluster": "prod"}, "add --region, such as"),
        ({"cluster": "prod", "profile": "nobody"}, "allowed: a profile of"),
        ({"cluster": "prod", "region": "mars"}, "allowed: a region of AWS"),
    ],
)
def test_options_that_contradict_each_other_or_name_nothing_are_refused(
    options: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    with pytest.raises((CommandError, NoSuchEnvironmentError), match=words):
        locate(**{"environment": None, "cluster": None, "region": None, "profile": None, **options})
