"""``--json`` is JSON alone on standard output, in every command that has it."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import typer
from accounting import sacct_line

from holdfast import cli
from holdfast.cli.deployed import Context, Session, locate
from holdfast.cli.submission import Environment
from holdfast.localcloud import LocalCloud, containers
from holdfast.localcloud.home import claim
from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast_common import Event, kinds

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abc123def456"
HOST = "ip-10-1-0-4"
GROUP = {
    "InstanceGroupName": "head",
    "SlurmConfig": {"NodeType": "Controller"},
    "InstanceStorageConfigs": [{"FsxLustreConfig": {"MountPath": "/fsx"}}],
}
NODE = {
    "InstanceGroupName": "head",
    "InstanceId": "i-4",
    "InstanceType": "ml.m5.xlarge",
    "InstanceStatus": {"Status": "Running"},
    "PrivateDnsHostname": HOST,
}
TOLD = [
    Event(
        time_ns=(10**18) * 4 + number, source="control-plane" if kind.startswith("node_") else "job", node="i-4",
        job="7", kind=kind, detail={"nodes": "i-4", "step": 1},
    )
    for number, kind in enumerate(
        (kinds.JOB_STARTED, kinds.CHECKPOINT_SAVED, kinds.NODE_LOST, kinds.JOB_RESUMED, kinds.NODE_REPLACED)
    )
]  # fmt: skip
ANSWERS: dict[str, Any] = {
    "DescribeCluster": {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": [GROUP]},
    "ListClusterNodes": {"ClusterNodeSummaries": [NODE]},
    "ListTags": {"Tags": []},
    "FilterLogEvents": {
        "events": [
            {"message": event.to_json(), "logStreamName": "i-4/jobs" if event.source == "job" else event.source}
            for event in TOLD
        ]
    },
    "CreateLogStream": {},
    "PutLogEvents": {},
    "DescribeFileSystems": {"FileSystems": [{"Lifecycle": "AVAILABLE", "StorageCapacity": 1200}]},
    "DescribeDataRepositoryAssociations": {
        "Associations": [{"FileSystemPath": "/jobs", "DataRepositoryPath": "s3://bucket/jobs"}]
    },
}
PROGRAMS = {
    "sinfo": f"N|{HOST}|idle\nJ|8|RUNNING|{HOST}|0:01|None|train\n",
    "sacct": sacct_line(NodeList=HOST, JobName="[/x]") + "\n",
    "sbatch": "7\n",
    "id -u": "1000\n1000\n",
    "scontrol": f"JobId=7 JobState=COMPLETED BatchHost={HOST}\n   StdOut=/fsx/a.out\n",
    "cat": "said\n",
}
FLAGS: dict[str, list[str]] = {
    "check": ["ENV"],
    "diff": ["ENV"],
    "plan": ["--instances", "4", "--instance-type", "ml.p5.48xlarge", "--runs", "10", "--html", "PAGE"],
    "up": ["local"],
    "submit": ["JOB"],
    "packages": ["REQUIREMENTS"],
    "rehearse": ["JOB"],
    "env": [],
    "jobs": [],
    "why": ["7"],
    "cancel": ["7"],
    "logs": ["--job", "7"],
    "kill-node": ["i-4"],
    "inject": ["--list"],
    "status": [],
    "events": [],
    "incidents": ["--html", "PAGE"],
    "images list": [],
    "images build": ["--containers", "CONTAINERS"],
    "images add": ["docker-archive:x", "name"],
    "kubernetes build": [],
    "kubernetes show": [],
}


def commands(tree: Any, *, name: str = "") -> dict[str, Any]:
    found = {}
    for word, command in getattr(tree, "commands", {}).items():
        found |= commands(command, name=f"{name} {word}".strip())
    return found or {name: tree}


WITH_JSON = sorted(
    name
    for name, command in commands(typer.main.get_command(cli.app)).items()
    if any("--json" in one.opts for one in command.params)
)


class FakeNode:
    """A controller on which the programs of Slurm say one thing each."""

    spec = SimpleNamespace(instance_id="i-4")

    def run(self, argv: list[str], **_: Any) -> Any:
        words = " ".join(argv)
        said = next((text for program, text in PROGRAMS.items() if program in words), "")
        return SimpleNamespace(returncode=0, stdout=said, stderr="")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A local cloud of one node that answers whatever a command asks."""
    home = tmp_path / "home"
    claim(home)
    Session(
        environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
    ).save(home=home)
    stack = {"StackStatus": "CREATE_COMPLETE", "Outputs": [{"OutputKey": "FileSystemId", "OutputValue": "fs-1"}]}
    replaced: dict[tuple[Any, str], Callable[..., Any]] = {
        (Context, "ask"): lambda self, service, operation, **_: ANSWERS[operation],
        (Context, "client"): lambda self, service: MagicMock(),
        (Context, "describe_stack"): lambda self: stack,
        (LocalCloud, "is_claimed"): lambda self: True,
        (LocalCloud, "client_environment"): lambda self, *, region: {"AWS_REGION": region},
        (LocalCloud, "health"): lambda self: {},
        (containers, "add_image"): lambda *_, **__: SimpleNamespace(name="name", digest="d"),
        (containers, "build_training_image"): lambda *_, **__: SimpleNamespace(name="name", digest="d"),
    }
    by_path: dict[str, Callable[..., Any]] = {
        "holdfast.cli.deployed.sessions._refuse_dead": lambda local, *, environment: None,
        "holdfast.cli.commands.cluster.kill_node.inject": lambda context, *, node, fault: "i-4",
        "holdfast.cli.rehearsal.jobs.inject": lambda context, *, node, fault: "i-4",
        "holdfast.cli.commands.deployment.up.deploy": lambda *_, **__: locate(),
        "holdfast.cli.commands.environment.diff._read_deployed": lambda wanted: SimpleNamespace(
            environment=wanted.model_dump(mode="json"), stack_status="CREATE_COMPLETE"
        ),
        "holdfast.cli.commands.jobs.packages.make_environment": lambda *_, **__: Environment(
            path="/fsx/envs/x", python="3.11.2", packages=("numpy",)
        ),
        "holdfast.cli.commands.deployment.images._store": lambda: SimpleNamespace(list=list),
        "holdfast.cli.commands.deployment.images._changed_store": lambda *, verb: nullcontext(),
        "holdfast.localcloud.kubernetes.binaries.build": lambda **_: Binaries(directory=tmp_path, version="1.20.2"),
        "holdfast.localcloud.kubernetes.binaries.find_binaries": lambda _: None,
        "holdfast.cli.deployed.nodes.instance": lambda context, *, node: FakeNode(),
    }
    for (owner, name), stand_in in replaced.items():
        monkeypatch.setattr(owner, name, stand_in)
    for path, stand_in in by_path.items():
        monkeypatch.setattr(path, stand_in)
    monkeypatch.setattr("holdfast.cli.rehearsal.watching.EVENTS_WITHIN_S", 0.0)
    monkeypatch.setattr("holdfast.cli.rehearsal.watching.POLL_S", 0.0)
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    return tmp_path


def test_every_command_with_json_is_tried() -> None:
    assert sorted(FLAGS) == WITH_JSON


@pytest.mark.parametrize("name", WITH_JSON)
def test_standard_output_is_json_and_nothing_else(
    name: str, cloud: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cloud / "job" / "[a].sbatch"
    job.parent.mkdir()
    job.write_text("#!/bin/sh\n")
    given = {
        "JOB": str(job),
        "ENV": str(repository / "environments/minimal.yaml"),
        "PAGE": str(cloud / "page.html"),
        "CONTAINERS": str(repository / "containers"),
        "REQUIREMENTS": str(repository / "requirements.txt"),
    }
    words = [*name.split(), *(given.get(word, word) for word in FLAGS[name]), "--json"]
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.app(words)
    assert ended.value.code in (0, None), err.getvalue()
    if name == "events":
        assert [json.loads(line)["kind"] for line in out.getvalue().splitlines()] == [event.kind for event in TOLD]
    else:
        json.loads(out.getvalue())
