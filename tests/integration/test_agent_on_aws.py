"""The agent's own client against the embedded AWS: events that arrive once, HyperPod asked by its API."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from footing import ready_network, service_role
from ports import free_port
from simulated_nodes import Board, Marks
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.home import keys_of
from holdfast_agent.aws import LOGS, SAGEMAKER, Api, AwsError, Settings
from holdfast_agent.controller import ClusterPoller
from holdfast_agent.remedies import ApiRequests, RefusedError
from holdfast_agent.shipping import EventShipper, LogStream
from holdfast_agent.slurm import Program
from holdfast_common import Remedy, When
from holdfast_common.decisions import NodeState, Report

GROUP = "/holdfast/lab/events"


class Cloud:
    """An embedded AWS with a cluster ``lab``, and the settings that an agent has on its nodes."""

    def __init__(self, home: Path) -> None:
        self.aws = serve(home=home, hyperpod="simulated")
        keys = self.aws.keys
        self.settings = Settings(
            variables={
                "AWS_ENDPOINT_URL": self.aws.endpoint,
                "AWS_REGION": "us-west-2",
                "AWS_ACCESS_KEY_ID": keys.access_key_id,
                "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
                "AWS_SESSION_TOKEN": keys.session_token or "",
            }
        )
        self.client("logs").create_log_group(logGroupName=GROUP)

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name="us-west-2", **self.aws.client_arguments)

    def cluster(self) -> list[dict[str, Any]]:
        """Its instances."""
        ec2, sagemaker = self.client("ec2"), self.client("sagemaker")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/20")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        ready_network(ec2, vpc=vpc, group=group)
        role = service_role(self.client("iam"), "lab")
        groups = [
            {"InstanceGroupName": name, "InstanceType": "ml.c5.xlarge", "InstanceCount": count, "ExecutionRole": role}
            | {"SlurmConfig": {"NodeType": kind, **({"PartitionNames": ["dev"]} if kind == "Compute" else {})}}
            for name, count, kind in (("controller", 1, "Controller"), ("workers", 2, "Compute"))
        ]
        sagemaker.create_cluster(
            ClusterName="lab",
            InstanceGroups=groups,
            VpcConfig={"SecurityGroupIds": [group], "Subnets": [subnet]},
            Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
        )
        eventually(lambda: sagemaker.describe_cluster(ClusterName="lab")["ClusterStatus"] == "InService")
        return list(sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"])

    def lines(self, stream: str) -> list[str]:
        return lines_of(self.client("logs"), stream)


class Process:
    """An embedded AWS that can be away: a process of its own, always at one address."""

    def __init__(self, home: Path) -> None:
        port = str(free_port())
        self._command = [sys.executable, "-m", "holdfast.localcloud.aws", "--home", str(home), "--port", port]
        self.start()
        keys = keys_of(home)
        self.arguments = {"endpoint_url": f"http://localhost:{port}", "region_name": "us-west-2", **keys.boto}
        self.settings = Settings(
            variables={
                "AWS_ENDPOINT_URL": f"http://localhost:{port}",
                "AWS_REGION": "us-west-2",
                "AWS_ACCESS_KEY_ID": keys.access_key_id,
                "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
            }
        )
        self.logs.create_log_group(logGroupName=GROUP)

    @property
    def logs(self) -> Any:
        return boto3.client("logs", **self.arguments)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self._command, "--hyperpod", "simulated"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        assert "ready at" in self.process.stdout.readline()

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and answers nobody."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Nobody is at its address."""
        self.end()
        yield
        self.start()


def lines_of(logs: Any, stream: str, *, group: str = GROUP) -> list[str]:
    found = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)["events"]
    return [one["message"] for one in found]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process(tmp_path / "home")
    yield made
    made.end()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    made = Cloud(tmp_path_factory.mktemp("cloud"))
    yield made
    made.aws.stop()


def shipper(cloud: Cloud, folder: Path, stream: str) -> EventShipper:
    made = LogStream(api=Api(LOGS, settings=cloud.settings), group=GROUP, stream=stream)
    return EventShipper(
        path=folder / "events.jsonl",
        stream=made,
        state=folder / "shipped.json",
        stream_name=stream,
        look_s=0.05,
        shown_after_s=0.2,
    )


@pytest.mark.parametrize("keeps_state", [True, False])
def test_events_arrive_once_over_restarts(cloud: Cloud, tmp_path: Path, keeps_state: bool) -> None:
    stream = f"i-{keeps_state}"
    lines = [json.dumps({"time_ns": 0, "number": number}) for number in range(25)]
    for part in (lines[:10], lines[10:]):
        with (tmp_path / "events.jsonl").open("a") as file:
            file.write("".join(line + "\n" for line in part))
        wanted = lines[: lines.index(part[-1]) + 1]
        one = shipper(cloud, tmp_path, stream)
        one.start()
        eventually(lambda one=one, wanted=wanted: one.numbers()["events_shipped_total"] == len(wanted) or one.problem)
        assert one.problem == ""
        one.stop()
        assert cloud.lines(stream) == wanted
        if not keeps_state:
            (tmp_path / "shipped.json").unlink()


def test_a_group_that_is_not_there_yet_is_waited_for(cloud: Cloud, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("{}\n")
    group = "/holdfast/late/events"
    made = LogStream(api=Api(LOGS, settings=cloud.settings), group=group, stream="i-1")
    one = EventShipper(
        path=tmp_path / "events.jsonl",
        stream=made,
        state=tmp_path / "shipped.json",
        stream_name="i-1",
        look_s=0.05,
        shown_after_s=0.0,
    )
    one.start()
    eventually(lambda: "ResourceNotFound" in one.problem)
    logs = cloud.client("logs")
    logs.create_log_group(logGroupName=group)
    eventually(lambda: one.numbers()["events_shipped_total"] == 1)
    one.stop()
    assert lines_of(logs, "i-1", group=group) == ["{}"]
    assert one.problem == ""


@pytest.mark.parametrize("absence", [pytest.param("frozen", marks=pytest.mark.e2e), "ended"])
def test_events_of_the_time_in_which_cloudwatch_was_away_arrive_once_and_in_order(
    process: Process, tmp_path: Path, absence: str
) -> None:
    """
    Seconds here: an agent gives nothing up, it tries again at least every 15 s, and ten minutes are forty such tries.
    """
    lines = [json.dumps({"time_ns": 0, "number": number}) for number in range(30)]

    def write(part: list[str]) -> None:
        with (tmp_path / "events.jsonl").open("a") as file:
            file.write("".join(line + "\n" for line in part))

    one = EventShipper(
        path=tmp_path / "events.jsonl",
        stream=LogStream(
            api=Api(LOGS, settings=process.settings, timeout_s=0.3, attempts=1), group=GROUP, stream="i-1"
        ),
        state=tmp_path / "shipped.json",
        stream_name="i-1",
        look_s=0.05,
        shown_after_s=0.2,
        longest_rest_s=0.2,
    )
    write(lines[:10])
    one.start()
    eventually(lambda: one.numbers()["events_shipped_total"] == 10)
    with getattr(process, absence)():
        write(lines[10:20])
        eventually(lambda: one.numbers()["shipping_failures_total"] >= 5 and one.problem)
        write(lines[20:])
    eventually(lambda: one.numbers()["events_shipped_total"] == 30)
    one.stop()
    assert lines_of(process.logs, "i-1") == lines


def test_keys_that_are_none_are_refused_by_name(cloud: Cloud) -> None:
    variables = {**cloud.settings.variables, "AWS_SECRET_ACCESS_KEY": "wrong"}
    with pytest.raises(AwsError) as caught:
        Api(LOGS, settings=Settings(variables=variables)).call("DescribeLogGroups")
    assert caught.value.status in (400, 403)


def test_hyperpod_is_asked_by_its_api_and_in_use_is_under_way(cloud: Cloud, tmp_path: Path) -> None:
    instances = cloud.cluster()
    config = tmp_path / "resource_config.json"
    arn = cloud.client("sagemaker").describe_cluster(ClusterName="lab")["ClusterArn"]
    config.write_text(json.dumps({"ClusterConfig": {"ClusterArn": arn}}))
    api = Api(SAGEMAKER, settings=cloud.settings)
    looker = ClusterPoller(
        cluster="lab",
        sagemaker=api,
        logs=Api(LOGS, settings=cloud.settings),
        program=Program(),
        resource_config=config,
        with_slurm=False,
    )
    seen = looker.look(boot_s=1.0)
    assert seen.problems == ()
    assert {one.instance_id for one in seen.instances or ()} == {one["InstanceId"] for one in instances}
    assert {one.status for one in seen.instances or ()} == {"Running"}
    assert (seen.records, seen.has_control_plane_events) == ((), False)

    requests = ApiRequests(Marks(Board(["w"])), cluster="lab", api=lambda: api)

    def ask(instance_id: str) -> tuple[str, str]:
        report = Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, instance=instance_id)
        try:
            requests.ask(NodeState("w", report=report), "replace")
        except RefusedError as error:
            return "in-use" if error.in_use else "refused", str(error)
        return "done", ""

    by_group = {one["InstanceGroupName"]: one["InstanceId"] for one in instances}
    assert ask("i-00000000000000000")[0] == "refused"
    outcome, why = ask(by_group["controller"])
    assert (outcome, "InvalidInstanceStatus" in why) == ("refused", True)
    first, second = ask(by_group["workers"]), ask(by_group["workers"])
    assert first == ("done", "")
    assert second[0] in ("in-use", "refused"), "asked for twice: under way, or replaced by now"


def test_hmas_findings_are_read_from_its_streams(cloud: Cloud, tmp_path: Path) -> None:
    logs = cloud.client("logs")
    group = "/aws/sagemaker/Clusters/lab/abc"
    logs.create_log_group(logGroupName=group)
    record = '{"msg":"x","HealthMonitoringAgentDetectionEvent":"HealthEvent"}'
    config = tmp_path / "resource_config.json"
    config.write_text(json.dumps({"ClusterConfig": {"ClusterArn": "arn:aws:sagemaker:us-west-2:1:cluster/abc"}}))
    api = Api(LOGS, settings=cloud.settings)
    looker = ClusterPoller(
        cluster="lab", sagemaker=api, logs=api, program=Program(), resource_config=config, with_slurm=False
    )
    assert looker.look(boot_s=1.0).records == ()
    for stream, text in (
        ("SagemakerHealthMonitoringAgent/workers/i-7", record),
        ("SagemakerHealthMonitoringAgent/workers/i-7b", '{"msg":"all is well"}'),
        ("LifecycleConfig/workers/i-7", record),
    ):
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        events = [{"timestamp": int(api.now_s() * 1000), "message": text}]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    found = looker.look(boot_s=2.0).records or ()
    assert [(one.instance_id, one.text) for one in found] == [("i-7", record)]
