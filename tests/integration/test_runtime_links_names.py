"""Launchers that find each other by names, as in the pods of a Job, while some lookups get no answer."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from link_ends import DEADLINES, End, run, until
from ports import free_ports

real = socket.getaddrinfo


class Resolver:
    """What stands in for the cluster's DNS: the names of loopback, some of them silent."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.over = threading.Event()

    def __call__(self, host: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(host).endswith(".ranks"):
            return real(host, *args, **kwargs)
        self.asked.append(host)
        if host in self.silent:
            self.over.wait(60.0)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(self.addresses[host], *args, **kwargs)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr("socket.getaddrinfo", made)
    yield made
    made.over.set()


def names(ports: list[int]) -> tuple[tuple[str, int], ...]:
    return tuple((f"train-{node}.ranks", port) for node, port in enumerate(ports))


def accepted(end: End) -> Callable[[], int]:
    """How many connections a launcher has been asked for."""
    count, admit = [0], end.links._door.admit

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count[0] += 1
        await admit(reader, writer)

    end.links._door.admit = counted  # type: ignore[method-assign]
    return lambda: count[0]


def test_launchers_with_names_make_one_link_each_and_then_leave_each_other_alone(resolver: Resolver) -> None:
    async def test() -> None:
        ends = [End(node, size=4) for node in range(4)]
        counts = [accepted(end) for end in ends]
        ports = free_ports(len(ends))
        for end, port in zip(ends, ports, strict=True):
            await end.open(port=port, named=names(ports))
            resolver.addresses[f"train-{end.links._me.node}.ranks"] = "127.0.0.1"
        await until(lambda: all(len(end.links.up) == 3 for end in ends))

        async with asyncio.timeout(30.0):
            seen: list[int] = []
            while seen != (now := [count() for count in counts]):
                seen = now
                await asyncio.sleep(1.5)

        assert sum(seen) <= 2 * 12  # at most once by name and once where it said it is, of each two in either direction
        assert all(end.down == [] for end in ends)

    run(test())


@pytest.mark.parametrize("node", [pytest.param(0, marks=pytest.mark.e2e), 1, pytest.param(2, marks=pytest.mark.e2e)])
def test_one_that_comes_back_under_its_name_is_met_while_nobody_answers_for_names(
    node: int, resolver: Resolver
) -> None:
    """Any of the three: of two the higher calls."""

    async def test() -> None:
        ends = [End(each) for each in range(3)]
        ports = free_ports(3)
        for end, port in zip(ends, ports, strict=True):
            resolver.addresses[f"train-{end.links._me.node}.ranks"] = "127.0.0.1"
            await end.open(port=port, named=names(ports))
        await until(lambda: all(len(end.links.up) == 2 for end in ends))
        others = [end for end in ends if end.links._me.node != node]
        resolver.silent |= {name for name, _ in names(ports)}
        await ends[node].links.close()
        await until(lambda: all(node not in end.links.up for end in others))
        again, (port,) = End(node), free_ports(1)

        # It has one address that needs no name, as where one lookup was answered.
        await again.open(others[0], port=port, named=names(ports))
        since = time.monotonic()
        await until(lambda: len(again.links.up) == 2 and all(node in end.links.up for end in others))

        assert time.monotonic() - since < 20.0
        assert resolver.silent & set(resolver.asked[-3:])

    run(test())


def test_lookups_that_hang_hold_up_nothing_else(resolver: Resolver) -> None:
    async def test() -> None:
        resolver.silent |= {f"train-{node}.ranks" for node in range(40)}
        end = await End(50).open(named=tuple((f"train-{node}.ranks", 1) for node in range(40)))
        await until(lambda: len(set(resolver.asked)) == 40)
        await asyncio.sleep(3 * DEADLINES.heartbeat)

        answer = asyncio.get_running_loop().run_in_executor(None, lambda: "forked")

        assert await asyncio.wait_for(answer, 10.0) == "forked"
        assert len(resolver.asked) == 40  # a lookup that hangs is not asked for again
        assert end.down == []

    run(test())


def test_a_name_that_nobody_answers_for_any_more_is_called_where_it_was(resolver: Resolver) -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        resolver.addresses["train-0.ranks"] = "127.0.0.1"
        (port,) = free_ports(1)
        await high.open(named=(("train-0.ranks", port),))
        await until(lambda: "train-0.ranks" in high.links._calls._names._found)
        resolver.silent.add("train-0.ranks")

        await low.open(port=port)

        await until(lambda: bool(low.up and high.up))

        assert (low.up, high.up) == ([(1, 0)], [(0, 0)])

    run(test())
