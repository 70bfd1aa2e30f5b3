"""Messages between launcher and rank, deadlines, the store's entries, and where launchers find each other."""

import base64
import socket
import threading
from dataclasses import fields

import pytest

from holdfast_runtime.control import (
    FROM_RANK,
    TO_RANK,
    Build,
    Change,
    Changed,
    Cold,
    ControlClient,
    Deadlines,
    Fault,
    Finished,
    Hello,
    KeyBox,
    Keys,
    Leave,
    MessageError,
    Plan,
    Progress,
    Put,
    Raised,
    Ready,
    Stop,
    View,
)
from holdfast_runtime.launcher.keys import SharedKeys
from holdfast_runtime.launcher.links import ChangeAt, ChangedAt, PeersError, expand_host_list, find_peers

FROM = [
    Hello(pid=1),
    Ready(
        committed_step=3,
        state="valid",
        digest="ab",
        port=5,
        snapshots=((1, 2),),
        checkpoint_step=2,
        twins=(2,),
        prepared=True,
    ),
    Progress(step=3, phase="forward"),
    Fault(reason="gone", fatal=True),
    Finished(committed_step=9),
    Raised(step=3, generation=2, what="ValueError: no", traceback="Traceback", where="step"),
    Put(generation=1, key="a", value="Yg=="),
    Change(generation=1, request=2, key="n", operation="add", amount=3),
    Ready(committed_step=0, state="none", buildable="apart", built=2, moves=True),
    Cold(reason="ValueError: no"),
]
TO = [
    Leave(generation=2, reason="rank 1 is lost"),
    View(2, 0, 4, 7, Plan(source="peer", donors=(1, 2)), hosts=("host", "host"), ports=(1, 2)),
    Stop(reason="the end", exit_code=1),
    Keys.of(1, {"a": "Yg==", "b": None}),
    Changed(request=2, value="Mw=="),
    Build(rank=2, world_size=4, step=7),
]


@pytest.mark.parametrize("message", FROM, ids=lambda message: type(message).__name__)
def test_what_a_rank_says_arrives_as_it_was(message: object) -> None:
    assert FROM_RANK.decode(FROM_RANK.encode(message)) == message  # type: ignore[arg-type]


@pytest.mark.parametrize("message", TO, ids=lambda message: type(message).__name__)
def test_what_a_launcher_says_arrives_as_it_was(message: object) -> None:
    assert TO_RANK.decode(TO_RANK.encode(message)) == message  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"type":"hello"}',
        b'{"type":"hello","pid":"1"}',
        b'{"type":"hello","pid":true}',
        b'{"type":"hello","pid":1,"more":2}',
        b'{"type":"progress","step":1,"phase":"lunch"}',
        b'{"type":"leave","generation":1,"reason":"of the other direction"}',
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(MessageError):
        FROM_RANK.decode(line)


def test_deadlines_grow_from_the_innermost_wait_to_the_outermost() -> None:
    order = ["beat", "heartbeat", "leave", "ready", "minority", "view", "connect", "transfer", "start"]
    deadlines = Deadlines()

    values = [getattr(deadlines, name) for name in order]

    assert values == sorted(set(values))
    assert deadlines.leave < deadlines.progress
    assert {field.name for field in fields(Deadlines)} == {*order, "frozen", "silence", "progress", "stop"}


def test_ranks_have_as_long_to_save_as_slurm_and_torchrun_give_them() -> None:
    assert Deadlines().stop == 30.0


@pytest.mark.parametrize(
    "wrong", [{"heartbeat": 0.1}, {"leave": 100.0}, {"beat": 0.0}, {"progress": 1.0}, {"stop": -1.0}], ids=str
)
def test_deadlines_in_another_order_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="deadline"):
        Deadlines(**wrong)


def test_an_entry_of_an_older_generation_does_not_exist() -> None:
    box = KeyBox(lambda _message: None)
    box.put("address", b"old", generation=1)

    box.take(Keys.of(2, {"other": base64.b64encode(b"new").decode()}))

    assert not box.has(["address"], generation=2)
    with pytest.raises(ConnectionError, match="generation 1 is over"):
        box.get("address", generation=1, deadline_s=0.1)
    assert box.get("other", generation=2, deadline_s=0.1) == b"new"


def test_an_entry_that_nobody_sets_is_waited_for_no_longer_than_the_deadline() -> None:
    with pytest.raises(TimeoutError, match="no rank has set missing of generation 1"):
        KeyBox(lambda _message: None).get("missing", generation=1, deadline_s=0.05)


def test_a_wait_for_an_entry_ends_when_its_generation_ends() -> None:
    box = KeyBox(lambda _message: None)
    threading.Timer(0.05, box.end, [1]).start()

    with pytest.raises(ConnectionError, match="generation 1 is over"):
        box.get("missing", generation=1, deadline_s=20)


class Net:
    """Launchers whose messages arrive at once."""

    def __init__(self, count: int) -> None:
        self.nodes = [SharedKeys(_Outlet(self, node), node=node) for node in range(count)]
        self.seen: list[dict[str, str | None]] = [{} for _ in range(count)]
        self.answers: list[tuple[int, int, str]] = []
        for node in self.nodes:
            node.begin(1, nodes=range(count))


class _Outlet:
    def __init__(self, net: Net, node: int) -> None:
        self._net, self._node = net, node

    def to_ranks(self, keys: Keys) -> None:
        self._net.seen[self._node] |= dict(keys.entries)

    def to_launchers(self, keys: Keys) -> None:
        for other, node in enumerate(self._net.nodes):
            if other != self._node and node.take(keys):
                node.share()

    def to_launcher(self, node: int, message: Keys | ChangeAt | ChangedAt) -> None:
        target = self._net.nodes[node]
        if isinstance(message, Keys):
            target.take(message)
            target.share()
        elif isinstance(message, ChangeAt):
            target.change_here(message)
        else:
            target.answer(message)

    def to_slot(self, slot: int, message: Changed) -> None:
        self._net.answers.append((self._node, slot, base64.b64decode(message.value).decode()))


def test_entries_of_one_node_reach_the_ranks_of_all() -> None:
    net = Net(3)

    net.nodes[1].put(Put(generation=1, key="a", value="Yg=="))
    net.nodes[1].share()

    assert net.seen == [{"a": "Yg=="}] * 3


def test_a_counter_is_the_same_for_all_and_loses_nothing() -> None:
    net = Net(3)

    for number in range(9):
        net.nodes[number % 3].change(0, Change(1, number, "ready", "add", amount=1))

    assert sorted(answer for *_, answer in net.answers) == [str(count) for count in range(1, 10)]
    assert {value["ready"] for value in net.seen} == {base64.b64encode(b"9").decode()}


def test_entries_that_come_before_their_view_wait_for_it() -> None:
    net = Net(2)

    net.nodes[0].take(Keys.of(2, {"early": "Yg=="}))
    assert "early" not in net.seen[0]
    net.nodes[0].begin(2, nodes=[0, 1])
    net.nodes[0].share()

    assert net.seen[0]["early"] == "Yg=="


def peers(environment: dict[str, str], **given: object) -> object:
    answers = {"scontrol": "node-a\nnode-b\nnode-c\n", "squeue": "node-b\nnode-c\n"}
    options = {"nodes": None, "node_rank": None, "listed": None, "endpoint": None, "port": None, **given}
    return find_peers(environment=environment, run=lambda command: answers[command[0]], **options)  # type: ignore[arg-type]


def test_under_slurm_the_allocation_says_who_is_there() -> None:
    found = peers({"SLURM_JOB_NODELIST": "node-[a-c]", "SLURM_NODEID": "1", "SLURM_JOB_ID": "42"})

    assert (found.nodes, found.node_rank, found.host) == (3, 1, "node-b")  # type: ignore[attr-defined]
    assert found.known == (("node-a", 29442), ("node-b", 29442), ("node-c", 29442))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("listed", "hosts"),
    [
        ("ip-10-1-0-[11-12,20],login", ["ip-10-1-0-11", "ip-10-1-0-12", "ip-10-1-0-20", "login"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("x[1-2]-y[3,5]", ["x1-y3", "x1-y5", "x2-y3", "x2-y5"]),
        ("a", ["a"]),
    ],
)
def test_a_host_list_means_what_scontrol_says(listed: str, hosts: list[str]) -> None:
    """The answers are those of ``scontrol show hostnames`` of Slurm 22.05.8."""
    assert expand_host_list(listed) == hosts


@pytest.mark.parametrize("listed", ["", "n[a-b]", "n[1-]"])
def test_what_is_no_host_list_is_refused(listed: str) -> None:
    with pytest.raises(PeersError, match="SLURM_JOB_NODELIST is"):
        expand_host_list(listed)


def test_in_a_container_without_slurms_programs_the_allocation_still_says_who_is_there() -> None:
    def absent(_command: object) -> str:
        raise FileNotFoundError

    options = {"nodes": None, "node_rank": None, "listed": None, "endpoint": None, "port": None, "run": absent}
    slurm = {"SLURM_JOB_NODELIST": "node-[1-3]", "SLURM_NODEID": "2", "SLURM_JOB_ID": "42"}
    found = find_peers(environment=slurm, **options)  # type: ignore[arg-type]
    assert (found.nodes, found.node_rank, found.known[0]) == (3, 2, ("node-1", 29442))

    array = slurm | {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_COUNT": "2"}
    with pytest.raises(PeersError, match="there is no squeue to ask where the others are, as in a container"):
        find_peers(environment=array, **options)  # type: ignore[arg-type]


def test_in_a_job_array_each_task_is_a_node_and_running_ones_are_asked_for() -> None:
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "5"}

    found = peers(array | {"SLURM_JOB_NODELIST": "node-c", "SLURMD_NODENAME": "node-c"})

    assert (found.nodes, found.node_rank, found.host) == (5, 4, "node-c")  # type: ignore[attr-defined]
    assert found.known == (("node-b", 29407), ("node-c", 29407))  # type: ignore[attr-defined]


def test_in_kubernetes_the_pods_of_the_job_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda _name: "train-1.ranks.default.svc.cluster.local")

    found = peers({"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}, nodes=3)

    assert (found.nodes, found.node_rank) == (3, 1)  # type: ignore[attr-defined]
    assert found.known[2] == ("train-2.ranks.default.svc.cluster.local", 29400)  # type: ignore[attr-defined]
    assert found.host == found.known[1][0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("loopback", ["127.0.0.1", "::1"])
def test_in_kubernetes_the_others_are_told_the_address_of_the_pod(
    loopback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "train-1.ranks.default.svc.cluster.local"
    hosts = {name: [(2, 1, 6, "", (loopback, 0)), (2, 1, 6, "", ("10.1.7.3", 0))]}
    monkeypatch.setattr("socket.getfqdn", lambda _name: name)
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_args, **_kwargs: hosts[host])

    found = peers({"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}, nodes=3)

    assert found.host == "10.1.7.3"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("environment", "given", "said"),
    [
        ({}, {"nodes": 2}, "the addresses of the other nodes are not known"),
        ({}, {"listed": "a:1,b:2", "nodes": 3}, "--nnodes is 3 and --peers names 2"),
        ({}, {"listed": "a:1,b:2", "node_rank": 2}, "--node-rank is 2; allowed: 0 to 1"),
        ({}, {"endpoint": "host"}, "allowed: HOST:PORT"),
        ({"SLURM_JOB_NODELIST": "node-[a-c]"}, {"nodes": 2}, "Slurm's allocation has 3 nodes"),
    ],
)
def test_a_place_that_cannot_be_known_is_refused(
    environment: dict[str, str], given: dict[str, object], said: str
) -> None:
    with pytest.raises(PeersError, match=said):
        peers(environment, **given)


def test_who_has_a_model_hears_no_more_of_what_to_build_and_who_has_none_hears_it_first() -> None:
    launcher, rank = socket.socketpair()
    with launcher, rank:
        client = ControlClient(rank)
        asked = Build(rank=2, world_size=4, step=7)
        view = View(2, 2, 4, 7, Plan(source="peer"))
        for message in (asked, asked, view):
            launcher.sendall(TO_RANK.encode(message) + b"\n")

        assert client.receive_place(deadline_s=10.0) == asked
        assert client.receive_view(deadline_s=10.0) == view


def test_a_rank_that_connects_when_the_job_ends_waits_for_no_other_rank() -> None:
    launcher, rank = socket.socketpair()
    with launcher, rank:
        client = ControlClient(rank)
        stop = Stop(reason="rank 2 raised", exit_code=1)
        launcher.sendall(TO_RANK.encode(stop) + b"\n")

        with pytest.raises(ConnectionError, match="the job has ended: rank 2 raised"):
            client.keys.get("missing", generation=1, deadline_s=20)
        assert client.receive_view(deadline_s=10.0) == stop
