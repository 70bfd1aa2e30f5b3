"""Getting out of a process group: only its own connections break, and a group that does not end is left behind."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from sleeping_work import SleepingWork
from torch import nn

from holdfast_runtime.groups import Group, Opening, has_ended, sockets_of
from holdfast_runtime.inprocess import Reducer

Pair = Callable[[], tuple[socket.socket, socket.socket]]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Both ends of a TCP connection."""
    opened: list[socket.socket] = []

    def make() -> tuple[socket.socket, socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            here = socket.create_connection(server.getsockname())
            there, _ = server.accept()
        opened.extend((here, there))
        there.settimeout(5.0)
        return here, there

    yield make
    for end in opened:
        end.close()


def opened(before: dict[int, str]) -> Group:
    group = Group(backend="gloo")
    group._opening = Opening(before=before)
    return group


def made(group: Group, sockets: dict[int, str]) -> None:
    assert group._opening is not None
    group._opening.made = sockets


def is_broken(there: socket.socket) -> bool:
    there.settimeout(0.1)
    try:
        return there.recv(1) == b""
    except TimeoutError:
        return False


def test_connections_of_the_group_break_and_those_of_the_script_do_not(pair: Pair) -> None:
    _, earlier = pair()
    before = sockets_of()
    group = opened(before)
    _, own = pair()
    made(group, Opening(before=before).sockets())
    _, later = pair()
    group.release()
    assert [is_broken(end) for end in (earlier, own, later)] == [False, True, False]


def test_while_a_group_is_being_made_whatever_is_new_belongs_to_it(pair: Pair) -> None:
    group = opened(sockets_of())
    _, own = pair()
    group.release()
    assert is_broken(own)


def test_a_release_that_is_late_never_breaks_the_connections_of_the_next_group(pair: Pair) -> None:
    group = opened(sockets_of())
    late = group._opening
    assert late is not None
    group._release_and_end(late)
    pair()

    assert late.sockets() == {}
    late.over = False
    assert len(late.sockets()) == 2, "else it would have been among them"


def test_a_descriptor_that_is_something_else_by_now_is_left_alone(pair: Pair) -> None:
    group = opened({})
    here, there = pair()
    made(group, {here.fileno(): "socket:[1]"})
    group.release()
    assert not is_broken(there)


def test_a_listening_socket_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        group = opened({})
        group.release()
        with socket.create_connection(server.getsockname(), timeout=5.0) as caller:
            assert not is_broken(caller)


class Stuck:
    """A group whose end waits for a thread that sleeps."""

    end = threading.Event()

    def __del__(self) -> None:
        self.end.wait(5.0)


class Distributed:
    """What of torch.distributed the end of a group needs."""

    def __init__(self) -> None:
        self.group: Any = self
        self.WORLD: Any = Stuck()

    def is_initialized(self) -> bool:
        return True

    def groups(self) -> list[Any]:
        return [self.WORLD]

    def destroy_process_group(self) -> None:
        self.WORLD = None


def test_a_group_that_does_not_end_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = Distributed()
    monkeypatch.setattr("holdfast_runtime.groups.group.dist", distributed)
    monkeypatch.setattr("holdfast_runtime.groups.private.groups", distributed.groups)
    group = opened(sockets_of())
    made(group, {})
    began = time.monotonic()
    try:
        assert not group.close()
        assert time.monotonic() - began < 2.0
        assert group.close(), "it is forgotten"
    finally:
        Stuck.end.set()


def test_who_handles_an_error_does_not_wait_for_a_group_that_was_given_to_what_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collective that is left raises, and its traceback has all that the calls were given."""

    def collective(given: object, *, known: list[str]) -> None:
        del known
        raise ConnectionError("it was time to leave")

    def step(given: object) -> None:
        try:
            collective(given, known=[])
        except ConnectionError as error:
            raise RuntimeError("the step failed") from error

    distributed = Distributed()
    monkeypatch.setattr("holdfast_runtime.groups.group.dist", distributed)
    monkeypatch.setattr("holdfast_runtime.groups.private.groups", distributed.groups)
    monkeypatch.setattr(Stuck, "end", threading.Event())
    group = opened(sockets_of())
    made(group, {})
    began = time.monotonic()
    try:
        try:
            step(distributed.WORLD)
        except RuntimeError:
            assert not group.close()
        assert time.monotonic() - began < 2.0
    finally:
        Stuck.end.set()


def test_after_such_a_group_gradients_go_to_other_memory() -> None:
    model = nn.Linear(3, 2)
    reducer = Reducer(list(model.parameters()), tail=2)
    before = [bucket.flat for bucket in reducer._buckets]
    before_tail = reducer.tail
    reducer.renew()
    before[0].fill_(7)
    assert [bucket.flat.sum().item() for bucket in reducer._buckets] == [0]
    assert reducer.tail.data_ptr() != before_tail.data_ptr()
    assert torch.equal(reducer.tail, reducer._buckets[-1].flat[-2:])
    assert sum(view.numel() for view in reducer._buckets[0].views) == 8


def test_a_collective_that_takes_long_is_looked_at_until_it_ends_and_its_error_is_its_own() -> None:
    work = SleepingWork()
    work.ends_after = 3

    assert [has_ended(work) for _ in range(3)] == [False, False, True]

    work.error = "connection reset by peer"
    with pytest.raises(RuntimeError, match="reset by peer"):
        has_ended(work)


class NeverConnects:
    """As gloo where the other rank has told its address and was lost: the wait ends by nothing but its timeout."""

    def __init__(self, *_arguments: object, timeout: timedelta, **_options: object) -> None:
        NeverConnects.waiting.set()
        NeverConnects.end.wait(timeout.total_seconds())

    waiting, end = threading.Event(), threading.Event()


def test_a_rank_that_waits_for_one_that_told_its_address_and_was_lost_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist.distributed_c10d, "ProcessGroupGloo", NeverConnects)
    group = Group(backend="gloo")
    try:
        with pytest.raises(ConnectionError, match="it was time to leave while ranks connected"):
            group.open(
                store=dist.HashStore(), rank=1, world_size=2, deadline_s=600.0, leaving=NeverConnects.waiting.is_set
            )
        assert group.close()
    finally:
        NeverConnects.end.set()
    assert dist.distributed_c10d.ProcessGroupGloo is NeverConnects


def test_a_group_that_connects_is_torch_s_own_and_waits_longer_in_its_collectives() -> None:
    group = Group(backend="gloo")
    try:
        group.open(store=dist.HashStore(), rank=0, world_size=1, deadline_s=5.0, wait_s=640.0)
        own = dist.group.WORLD._get_backend(torch.device("cpu"))  # type: ignore[union-attr]
        assert isinstance(own, dist.ProcessGroupGloo)
        assert own.options._timeout == timedelta(seconds=640)
    finally:
        group.close()
