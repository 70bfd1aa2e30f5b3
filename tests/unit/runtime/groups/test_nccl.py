"""NCCL by a stand-in: its environment, communicators before the first step, aborts."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fake_nccl import FakeNccl, group_of

from holdfast_runtime import groups
from holdfast_runtime.control import Deadlines, Leave
from holdfast_runtime.groups import Group, UnsupportedError, nccl
from holdfast_runtime.inprocess import Standing
from holdfast_runtime.inprocess.member import Peers


def waits(end: threading.Event) -> None:
    end.wait(60.0)


def meets(others: threading.Barrier) -> None:
    others.wait(10.0)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNccl.install(monkeypatch)


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group(backend="gloo")
    made.open(store=dist.HashStore(), rank=0, world_size=1, deadline_s=20.0)
    made.backend = nccl.MIXED
    yield made
    made.close()


def test_groups_of_gloo_have_nothing_to_abort_also_the_one_of_checkpoints(fake: None, group: Group) -> None:
    dist.new_group(backend="gloo", group_desc=groups.private.OF_CHECKPOINTS)

    group.release()

    assert nccl.backends(groups.private.groups()) == []


def test_communicators_of_all_groups_are_found_once_the_newest_first_and_behind_torch_s_wrapper(fake: None) -> None:
    first, second, wrapped = FakeNccl(), FakeNccl(), FakeNccl()
    gloo = SimpleNamespace()
    behind = group_of(SimpleNamespace(wrapped_pg=wrapped))
    made = [group_of(first, first), group_of(gloo), group_of(gloo, second), behind]

    assert nccl.backends(made) == [wrapped, second, first]


def test_a_torch_without_nccl_has_none() -> None:
    assert nccl.backends([group_of(FakeNccl())]) == []


def test_torch_s_watchdog_ends_no_survivor() -> None:
    environment = {"NCCL_NVLS_ENABLE": "1"}

    nccl.set_environment(environment)

    assert environment["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "0"
    assert environment["TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"] == "0"
    assert environment["NCCL_NVLS_ENABLE"] == "1", "the job's own value counts where any may be right"


@pytest.mark.parametrize("name", ["TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT"])
def test_a_job_that_sets_the_watchdog_otherwise_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"got {name}=1; allowed: 0, .*; remove {name} from the job's"):
        nccl.set_environment({name: "1"})


def test_communicators_are_made_in_the_order_of_the_groups_and_not_in_the_training_thread(fake: None) -> None:
    order: list[str] = []
    newest, oldest = (FakeNccl(connect=lambda name=name: order.append(name)) for name in ("newest", "oldest"))

    nccl.connect([newest, oldest], leaving=lambda: False, deadline_s=5.0)

    assert order == ["oldest", "newest"]
    assert threading.main_thread() not in newest.connected_in


def test_a_rank_leaves_while_a_communicator_waits_for_a_lost_peer(fake: None) -> None:
    waiting, end = threading.Event(), threading.Event()

    def connect() -> None:
        waiting.set()
        end.wait(60.0)

    later = FakeNccl()
    began = time.monotonic()
    try:
        with pytest.raises(ConnectionError, match="it was time to leave while NCCL communicators were made"):
            nccl.connect([later, FakeNccl(connect=connect)], leaving=waiting.is_set, deadline_s=600.0)
        assert time.monotonic() - began < 5.0
    finally:
        end.set()
    assert later.connected_in == []


def test_communicators_that_are_not_made_in_time_are_an_error(fake: None) -> None:
    end = threading.Event()
    try:
        with pytest.raises(ConnectionError, match=r"not made within 0\.05 s"):
            nccl.connect([FakeNccl(connect=lambda: waits(end))], leaving=lambda: False, deadline_s=0.05)
    finally:
        end.set()


def test_an_error_of_nccl_is_raised_where_it_is_waited_for(fake: None) -> None:
    def connect() -> None:
        raise RuntimeError("NCCL error: unhandled system error")

    with pytest.raises(RuntimeError, match="unhandled system error"):
        nccl.connect([FakeNccl(connect=connect)], leaving=lambda: False, deadline_s=5.0)


def test_an_abort_that_waits_for_another_one_does_not_wait_for_ever(fake: None) -> None:
    both = threading.Barrier(2)
    found = [FakeNccl(abort=lambda: meets(both)) for _ in range(2)]
    stuck: list[int] = []
    aborts = nccl.Aborts(stuck=lambda: stuck.append(1))

    aborts.begin(found)
    aborts.begin(found)
    aborts.join()

    assert stuck == []
    assert not both.broken
    assert [len(each.aborted_in) for each in found] == [1, 1], "a second abort of a communicator is none"


def test_an_abort_that_fails_leaves_the_others_to_end(fake: None) -> None:
    def fail() -> None:
        raise RuntimeError("CUDA error")

    broken, whole = FakeNccl(abort=fail), FakeNccl()
    aborts = nccl.Aborts(stuck=pytest.fail)

    aborts.begin([broken, whole])
    aborts.join()

    assert len(whole.aborted_in) == 1


def test_a_process_whose_communicator_cannot_be_aborted_ends_by_its_own_exit_code(
    fake: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    end = threading.Event()
    aborts = nccl.Aborts(limit_s=0.05)
    try:
        aborts.begin([FakeNccl(abort=lambda: waits(end))])
        aborts.join()
    finally:
        end.set()

    assert ended == [nccl.CANNOT_LEAVE]


def test_connections_of_gloo_are_broken_before_a_communicator_is_aborted(
    fake: None, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    opening: Any = group._opening
    opening.made = {-1: "socket:[1]"}
    backend = FakeNccl(abort=lambda: order.append("abort"))
    monkeypatch.setattr("holdfast_runtime.groups.group.shut_down", lambda *_: order.append("shut"))
    monkeypatch.setattr(nccl, "backends", lambda _groups: [backend])

    group.release()
    opening.aborts.join()

    assert order == ["shut", "abort"]


def test_after_an_abort_groups_are_forgotten_and_not_waited_for(
    fake: None, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dist, "destroy_process_group", lambda: pytest.fail("it joins the watchdog"))

    group.close()

    assert not dist.is_initialized()
    assert groups.private.groups() == []
    group.backend = "gloo"
    monkeypatch.undo()
    group.open(store=dist.HashStore(), rank=0, world_size=1, deadline_s=20.0)
    assert dist.get_world_size() == 1


def peers(backend: str) -> Peers:
    return Peers(Standing(), backend=backend, recorded=None, deadlines=Deadlines())


def test_the_thread_of_the_control_socket_outlives_a_release_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made, tries = peers("gloo"), []

    def release(_group: Group) -> None:
        tries.append(threading.current_thread())
        raise AttributeError("no such field in this torch")

    monkeypatch.setattr(Group, "release", release)
    made.entered()

    made.leave(Leave(generation=1, reason=""))
    made.left()

    assert tries


class Work:
    def __init__(self) -> None:
        self.waits: list[tuple[Any, ...]] = []

    def wait(self, *limit: Any) -> None:
        self.waits.append(limit)


@pytest.mark.parametrize(
    ("backend", "device", "limits"),
    [(nccl.MIXED, "cuda", 0), (nccl.MIXED, None, 1), ("nccl", None, 0), ("gloo", "cuda", 1)],
)
def test_a_wait_for_nccl_has_no_time_limit_whose_end_would_abort_the_communicator(
    backend: str, device: str | None, limits: int
) -> None:
    work = Work()

    peers(backend).wait(work, device=None if device is None else torch.device(device))

    assert [len(each) for each in work.waits] == [limits]
