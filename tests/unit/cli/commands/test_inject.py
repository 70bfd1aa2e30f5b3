"""``holdfast inject``: what is refused before anything is touched, what is told, and what Ctrl-C leaves."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.deployed import Context, Session
from holdfast.cli.terminal import CommandError, Interrupted
from holdfast.localcloud import planting
from holdfast.localcloud.planting import ActiveFault, PlantingError

NODE = "i-1"
DONE = ActiveFault(
    instance_id=NODE, host="ip-10-1-0-1", fault="gpu-lost", what="w", detail="gpu0.result=15", device="0000:53:00.0",
    since_ns=10**18, ends_ns=10**18 + 5 * 10**9, lasts=True, pid=1, start_ticks=2,
)  # fmt: skip


class Cloud:
    """One node, and what was done to it."""

    def __init__(self) -> None:
        self.status = "Running"
        self.planted: list[str] = []
        self.lasting: list[ActiveFault] = []
        self.events: list[dict[str, Any]] = []
        self.trouble: BaseException | None = None

    def ask(self, _context: Context, _service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "PutLogEvents":
            self.events += [json.loads(one["message"]) for one in parameters["logEvents"]]
        node = {"InstanceId": NODE, "InstanceGroupName": "workers", "InstanceStatus": {"Status": self.status}}
        return {"ListClusterNodes": {"ClusterNodeSummaries": [node]}}.get(operation, {"ClusterArn": "arn"})

    def plant(self, _fleet: Any, _node: Any, fault: Any, *, for_s: float | None, gpu: int) -> ActiveFault:
        if self.trouble is not None:
            raise self.trouble
        self.planted.append(fault.name)
        return DONE


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cloud:
    made = Cloud()
    Session(
        environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
    ).save(home=tmp_path)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setattr(Context, "ask", lambda *words, **more: made.ask(*words, **more))
    monkeypatch.setattr("holdfast.cli.deployed.sessions._refuse_dead", lambda local, *, environment: None)
    spec = SimpleNamespace(instance_id=NODE, hostname="ip-10-1-0-1", address="10.1.0.1")
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.nodes", lambda self: [SimpleNamespace(spec=spec)])
    monkeypatch.setattr(planting, "plant", made.plant)
    monkeypatch.setattr(planting, "planted", lambda fleet, *, node=None: made.lasting)
    return made


def invoke(*words: str) -> Any:
    return CliRunner().invoke(cli.app, ["inject", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "got no node; run: holdfast inject NODE FAULT"),
        ((NODE,), "got no fault; allowed: xid-N, clean-up-burst"),
        ((NODE, "xid-0"), "got fault 'xid-0'; allowed: xid-N"),
        ((NODE, "xid-79", "--for", "3"), "xid-79 is momentary, got --for 3"),
        ((NODE, "cut", "--for", "nan"), "got --for nan; allowed: a number of seconds above 0"),
        ((NODE, "--list", "--end"), "allowed: one of them"),
        ((NODE, "--list", "--for", "3"), "got --for with --end or --list"),
        (("i-9", "cut"), "there is no node 'i-9'; the nodes are: ip-10-1-0-1 (i-1)"),
    ],
)
def test_a_mistake_is_refused_in_words_and_nothing_is_planted(cloud: Cloud, words: tuple[str, ...], said: str):
    done = invoke(*words)
    assert isinstance(done.exception, CommandError)
    assert said in str(done.exception)
    assert done.exception.exit_code == 2
    assert cloud.planted == cloud.events == []


@pytest.mark.parametrize("status", ["Pending", "ShuttingDown", "Failure"])
def test_a_node_that_is_not_in_service_is_left_alone(cloud: Cloud, status: str):
    cloud.status = status
    done = invoke(NODE, "xid-79")
    assert str(done.exception) == (
        f"node i-1 is {status}, so xid-79 was not planted: a fault is planted on a node in service; "
        "see: holdfast status"
    )
    assert cloud.planted == cloud.events == []


def test_what_was_planted_is_printed_and_recorded_at_its_own_time(cloud: Cloud):
    done = invoke(NODE, "gpu-lost", "--for", "5", "--json")
    shown = json.loads(done.stdout)
    assert (shown["fault"], shown["device"], shown["since_ns"], shown["ends_ns"]) == (
        "gpu-lost", "0000:53:00.0", 10**18, 10**18 + 5 * 10**9,
    )  # fmt: skip
    (event,) = cloud.events
    assert (event["kind"], event["fault"], event["node"], event["time_ns"]) == (
        "fault_injected", "gpu-lost", NODE, 10**18,
    )  # fmt: skip
    assert event["detail"] == {
        "planted": "gpu-lost", "what": "gpu0.result=15", "host": "ip-10-1-0-1", "device": "0000:53:00.0",
        "ends_ns": 10**18 + 5 * 10**9,
    }  # fmt: skip


def test_a_fault_that_could_not_be_planted_is_no_event(cloud: Cloud):
    cloud.trouble = PlantingError("node i-1 is not running")
    assert str(invoke(NODE, "cut").exception) == "node i-1 is not running"
    assert cloud.events == []


@pytest.mark.parametrize(
    ("stays", "said"),
    [
        ([], "interrupted; no fault is active on i-1"),
        ([DONE], "interrupted; planted on i-1, and it stays: gpu-lost; end it with: holdfast inject i-1 --end"),
    ],
)
def test_an_interruption_says_what_stays(cloud: Cloud, stays: list[ActiveFault], said: str):
    cloud.trouble, cloud.lasting = Interrupted(), stays
    done = invoke(NODE, "gpu-lost")
    assert isinstance(done.exception, CommandError)
    assert (str(done.exception), done.exception.exit_code) == (said, 130)


def test_what_is_planted_is_listed_and_what_is_not_cannot_be_ended(cloud: Cloud):
    assert "no active faults" in invoke("--list").stdout
    cloud.lasting = [DONE]
    assert json.loads(invoke("--list", "--json").stdout)[0]["fault"] == "gpu-lost"
    done = invoke(NODE, "cut", "--end")
    assert str(done.exception) == "cut is not planted on i-1, where gpu-lost is; see: holdfast inject --list"


@pytest.mark.parametrize(("fault", "is_said"), [("xid-7", True), ("xid-8", False), ("xid-79", False), ("cut", False)])
def test_an_xid_that_requires_nothing_is_said_at_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, fault: str, is_said: bool
):
    done = dataclasses.replace(DONE, fault=fault)
    monkeypatch.setattr("holdfast.cli.commands.cluster.inject.plant_fault", lambda *_, **__: done)
    remark = f"health agents take no action on it: {fault} is gpu-notice; see: holdfast explain {fault}"
    assert (remark in " ".join(invoke(NODE, fault).stdout.split())) == is_said


@pytest.mark.parametrize(("controller", "is_said"), [("ip-10-1-0-1", True), ("ip-10-1-0-2", False)])
def test_what_the_loss_of_the_controller_means_is_said(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, controller: str, is_said: bool
):
    monkeypatch.setattr("holdfast.cli.rehearsal.faults.controller_hostname", lambda _: controller)
    monkeypatch.setattr("holdfast.cli.commands.cluster.kill_node.inject", lambda *_, **__: NODE)
    done = CliRunner().invoke(cli.app, ["kill-node", NODE])
    assert done.exit_code == 0, done.output
    assert ("it is Slurm's controller: jobs continue" in done.stdout) == is_said


SWITCH = "nn-0123456789abcdef0"


def lose_switch(monkeypatch: pytest.MonkeyPatch, *, names: str) -> tuple[Any, list[str]]:
    """Outcome of the command where Slurm names these nodes, and the cut ones of two that exist."""
    cut: list[str] = []

    def node(name: str, host: str) -> Any:
        spec = SimpleNamespace(instance_id=name, hostname=host, address="10.1.0.1")
        return SimpleNamespace(spec=spec, cut=lambda: cut.append(name), destroy=None, freeze=None)

    nodes = [node("i-1", "ip-10-1-0-1"), node("i-2", "ip-10-1-0-2")]
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.nodes", lambda self: nodes)
    monkeypatch.setattr("holdfast.cli.rehearsal.faults.controller_hostname", lambda _: "ip-10-1-0-9")
    monkeypatch.setattr("holdfast.cli.rehearsal.faults.run", lambda *_, **__: SimpleNamespace(stdout=names))
    return CliRunner().invoke(cli.app, ["kill-node", SWITCH, "--fault", "cut", "--json"]), cut


def test_all_nodes_of_a_switch_are_lost_and_one_that_no_longer_exists_is_left_out(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    done, cut = lose_switch(monkeypatch, names="ip-10-1-0-1\nip-10-1-0-2\nip-10-1-0-77\n")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"switch": SWITCH, "instance_ids": ["i-1", "i-2"], "fault": "cut"}
    assert cut == ["i-1", "i-2"]
    recorded = [(one["kind"], one["node"], one["fault"], one["detail"]) for one in cloud.events]
    assert recorded == [("fault_injected", name, "instance-unreachable", {"switch": SWITCH}) for name in ("i-1", "i-2")]


@pytest.mark.parametrize("names", ["", "ip-10-1-0-77\n"], ids=["no such switch", "no such node"])
def test_a_switch_without_a_node_of_the_cluster_is_refused(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, names: str):
    done, cut = lose_switch(monkeypatch, names=names)
    assert isinstance(done.exception, CommandError)
    assert str(done.exception) == (
        f"got switch '{SWITCH}', which has no node of the cluster; allowed: switches of Slurm's topology; see: "
        "holdfast ssh ip-10-1-0-9 -- scontrol show topology"
    )
    assert (cut, cloud.events) == ([], [])
