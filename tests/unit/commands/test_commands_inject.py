"""``holdfast inject``: what is refused before anything is touched, what is told, and what Ctrl-C leaves."""

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
from holdfast.localcloud.planting import Planted, PlantingError

NODE = "i-1"
DONE = Planted(
    instance_id=NODE, host="ip-10-1-0-1", fault="gpu-lost", what="w", detail="gpu0.result=15", device="0000:53:00.0",
    since_ns=10**18, ends_ns=10**18 + 5 * 10**9, lasts=True, pid=1, start_ticks=2,
)  # fmt: skip


class Cloud:
    """One node, and what was done to it."""

    def __init__(self) -> None:
        self.status = "Running"
        self.planted: list[str] = []
        self.lasting: list[Planted] = []
        self.events: list[dict[str, Any]] = []
        self.trouble: BaseException | None = None

    def ask(self, _context: Context, _service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "PutLogEvents":
            self.events += [json.loads(one["message"]) for one in parameters["logEvents"]]
        node = {"InstanceId": NODE, "InstanceGroupName": "workers", "InstanceStatus": {"Status": self.status}}
        return {"ListClusterNodes": {"ClusterNodeSummaries": [node]}}.get(operation, {"ClusterArn": "arn"})

    def plant(self, _fleet: Any, _node: Any, fault: Any, *, for_s: float | None, gpu: int) -> Planted:
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
        ((NODE, "xid-0"), "there is no fault 'xid-0'; allowed: xid-N"),
        ((NODE, "xid-79", "--for", "3"), "xid-79 is over at once and takes no time, given --for 3"),
        ((NODE, "cut", "--for", "nan"), "--for is nan; allowed: a number of seconds above 0"),
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
def test_an_interruption_says_what_stays(cloud: Cloud, stays: list[Planted], said: str):
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
