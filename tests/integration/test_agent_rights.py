"""The agent works with the IAM statements that a deployment gives to its node's role, and with none less."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from footing import TRUST, service_role
from running_agent import RunningAgent
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod.api import RoleSessions
from holdfast_agent.aws import LOGS, SAGEMAKER, Api, Settings
from holdfast_agent.controller import ClusterPoller
from holdfast_agent.shipping import EventShipper, LogStream
from holdfast_agent.slurm import Program

REGION, ACCOUNT = "us-west-2", "123456789012"
GROUP = "/holdfast/lab/events"
TEMPLATES = Path(__file__).parents[1] / "snapshot" / "__snapshots__" / "test_environments"
STATEMENTS = ("MakeStreams", "ShipEvents", "WatchNodes", "ReadHealthRecords")


def statements() -> dict[str, list[str]]:
    """Actions by the statement's name, as the reviewed template of the local environment has them."""
    (file,) = TEMPLATES.glob("*[[]local[]].json")
    found = {}
    for resource in json.loads(file.read_text())["Resources"].values():
        if resource["Type"] == "AWS::IAM::Policy":
            for one in resource["Properties"]["PolicyDocument"]["Statement"]:
                if one.get("Sid") in STATEMENTS:
                    actions = one["Action"]
                    found[one["Sid"]] = [actions] if isinstance(actions, str) else list(actions)
    return found


GIVEN = statements()
ACTIONS = sorted(action for actions in GIVEN.values() for action in actions)


class Lab:
    """An embedded AWS with a cluster and what its agents ask about."""

    def __init__(self, home: Path) -> None:
        self.aws = serve(home=home, hyperpod="simulated")
        self.made: dict[str, Any] = {}
        service_role(self.owner("iam"), "admin")
        group = {
            "InstanceGroupName": "g",
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            "ExecutionRole": f"arn:aws:iam::{ACCOUNT}:role/admin",
        }
        bucket = {"CreateBucketConfiguration": {"LocationConstraint": REGION}}
        self.owner("s3").create_bucket(Bucket="sagemaker-scripts", **bucket)
        self.cluster = self.owner("sagemaker").create_cluster(ClusterName="lab", InstanceGroups=[group])["ClusterArn"]
        self.records = f"/aws/sagemaker/Clusters/lab/{self.cluster.rpartition('/')[2]}"
        for name in (GROUP, self.records):
            self.owner("logs").create_log_group(logGroupName=name)
        self._roles = 0

    def owner(self, service: str) -> Any:
        if service not in self.made:
            self.made[service] = boto3.client(service, region_name=REGION, **self.aws.client_arguments)
        return self.made[service]

    def settings(self, *, without: str = "", elsewhere: str = "") -> Settings:
        """Of a session of a role with the statements, but one action, or with one about another resource."""
        logs = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
        resources = {
            "MakeStreams": f"{logs}:{GROUP}:*",
            "ShipEvents": f"{logs}:{GROUP}:log-stream:i-*",
            "ReadHealthRecords": f"{logs}:{self.records}:*",
            "WatchNodes": self.cluster,
        }
        rights = [
            {"Effect": "Allow", "Action": left, "Resource": resources[name] + ("x" if name == elsewhere else "")}
            for name, actions in GIVEN.items()
            if (left := [action for action in actions if action != without])
        ]
        self._roles += 1
        name = f"nodes-{self._roles}"
        iam = self.owner("iam")
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
        policy = {"Version": "2012-10-17", "Statement": rights}
        iam.put_role_policy(RoleName=name, PolicyName="nodes", PolicyDocument=json.dumps(policy))
        keys = json.loads(RoleSessions(sts=self.owner("sts")).document(role))
        return Settings(
            variables={
                "AWS_ENDPOINT_URL": self.aws.endpoint,
                "AWS_REGION": REGION,
                "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
                "AWS_SESSION_TOKEN": keys["Token"],
            }
        )

    def close(self) -> None:
        for one in self.made.values():
            one.close()
        self.aws.stop()


class Counted:
    """An ``Api`` whose calls are remembered, as IAM names them."""

    def __init__(self, api: Api, prefix: str, called: set[str]) -> None:
        self._api, self._prefix, self._called = api, prefix, called

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self._called.add(f"{self._prefix}:{operation}")
        return self._api.call(operation, **parameters)

    def now_s(self) -> float:
        return self._api.now_s()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("rights"))
    yield made
    made.close()


def shipped(settings: Settings, folder: Path, *, stream: str) -> tuple[set[str], Sequence[str]]:
    """Calls of an agent that ships an event and goes on from what the stream has, and its problems."""
    called: set[str] = set()
    logs = Counted(Api(service=LOGS, settings=settings), "logs", called)
    (folder / "events.jsonl").write_text('{"number": 1}\n')
    problems: list[str] = []
    for _ in range(2):  # the second has no state of its own, and counts what is in the stream
        shipper = EventShipper(
            path=folder / "events.jsonl",
            stream=LogStream(api=logs, group=GROUP, stream=stream),
            state=folder / "shipped.json",
            stream_name=stream,
            look_s=0.02,
            shown_after_s=0.0,
        )
        shipper.start()
        eventually(lambda shipper=shipper: shipper.numbers()["events_shipped_total"] == 1 or shipper.problem)
        shipper.stop()
        problems += [shipper.problem] if shipper.problem else []
        (folder / "shipped.json").unlink(missing_ok=True)
    return called, problems


def looked(settings: Settings, folder: Path, *, cluster: str) -> tuple[set[str], Sequence[str]]:
    """Calls of the controller's agent that watches the cluster, and its problems."""
    called: set[str] = set()
    resources = folder / "resource_config.json"
    resources.write_text(json.dumps({"ClusterConfig": {"ClusterArn": cluster}}))
    looker = ClusterPoller(
        cluster="lab",
        sagemaker=Counted(Api(service=SAGEMAKER, settings=settings), "sagemaker", called),
        logs=Counted(Api(service=LOGS, settings=settings), "logs", called),
        program=Program(),
        resource_config=resources,
        with_slurm=False,
    )
    return called, looker.look(boot_s=1.0).problems


def all_of(lab: Lab, folder: Path, settings: Settings) -> tuple[set[str], list[str]]:
    """What an agent of the controller calls, and what it says went wrong."""
    calls, first = shipped(settings, folder, stream=f"i-{folder.name}")
    watched, second = looked(settings, folder, cluster=lab.cluster)
    return calls | watched, [*first, *second]


def test_the_agent_calls_exactly_what_its_statements_name(lab: Lab, tmp_path: Path) -> None:
    called, problems = all_of(lab, tmp_path, lab.settings())
    assert problems == []
    assert sorted(called) == ACTIONS
    assert sorted(GIVEN) == sorted(STATEMENTS)


@pytest.mark.parametrize("action", ACTIONS)
def test_without_one_action_it_says_which_call_was_refused(lab: Lab, tmp_path: Path, action: str) -> None:
    _, problems = all_of(lab, tmp_path, lab.settings(without=action))
    assert problems
    assert all(f"to perform: {action} " in f"{problem} " for problem in problems), problems


@pytest.mark.parametrize("stream", ["control-plane", "cli"])
def test_no_node_writes_a_stream_of_the_control_plane_or_the_command_line(
    lab: Lab, tmp_path: Path, stream: str
) -> None:
    _, problems = shipped(lab.settings(), tmp_path, stream=stream)
    assert problems
    assert all("to perform: logs:" in problem for problem in problems), problems


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_is_about_another_resource(lab: Lab, tmp_path: Path, statement: str) -> None:
    _, problems = all_of(lab, tmp_path, lab.settings(elsewhere=statement))
    assert problems
    assert all(any(f"to perform: {action} " in one for action in GIVEN[statement]) for one in problems), problems


@pytest.mark.root
@pytest.mark.skipif(
    not os.access("/dev/kmsg", os.R_OK) or Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() != "1",
    reason="this machine shows its kernel log to everybody, or to nobody",
)
@pytest.mark.parametrize(("capabilities", "readable"), [("-all,+syslog", True), ("-all", False)])
def test_the_one_capability_of_the_unit_is_enough_and_is_needed(
    tmp_path: Path, capabilities: str, *, readable: bool
) -> None:
    unit = Path(__file__).parents[2] / "containers" / "health-agent" / "holdfast-agent.service"
    assert "\nCapabilityBoundingSet=CAP_SYSLOG\n" in unit.read_text()
    agent = RunningAgent(tmp_path, kernel_log__path="/dev/kmsg")
    agent.prefix = ("setpriv", f"--bounding-set={capabilities}", "--inh-caps=-all", "--no-new-privs")
    agent.start()
    try:
        (log,) = eventually(
            lambda: [
                one
                for one in agent.status_or_none()["detectors"]
                if one["name"] == "kernel-log" and one["looked_s_ago"] is not None
            ]
        )
        print(log)
        assert (log["support"] == "supported", "Operation not permitted" in log["reason"]) == (readable, not readable)
    finally:
        agent.end()
