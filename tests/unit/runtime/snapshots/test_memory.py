"""Snapshots in memory: who keeps what, what is always there for every rank, and what is refused."""

import contextlib
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from holdfast_common.placement import Spot, keepers  # noqa: E402
from holdfast_runtime.snapshots import (  # noqa: E402
    Place,
    Shard,
    SnapshotError,
    Snapshots,
)

DEADLINE_S = 5.0


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Rank:
    """A rank with a small model that is no part of a group."""

    def __init__(self, number: int, stack: ExitStack, *, seed: int = 0, width: int = 4) -> None:
        torch.manual_seed(seed)
        self.number = number
        self.model = torch.nn.Sequential(torch.nn.Linear(width, 3), torch.nn.BatchNorm1d(3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.counter = Counter()
        self.shard = Shard(self.model, self.optimizer, {"counter": self.counter})
        self.snapshots = Snapshots(host="127.0.0.1", settle_s=DEADLINE_S, transfer_s=DEADLINE_S)
        stack.callback(self.snapshots.close)

    def train(self, value: float) -> None:
        self.model(torch.full((4, self.model[0].in_features), value) + torch.rand(4, 1)).square().sum().backward()
        self.snapshots.before_update()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.counter.value += 1

    def state(self) -> dict[str, Any]:
        return {name: part.clone() for name, part in self.shard.tensors().items()}


class Counter:
    value = 0

    def state_dict(self) -> dict[str, int]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.value = state["value"]


def local(numbers: Sequence[int]) -> Sequence[int]:
    """Agreement of a rank with itself."""
    return numbers


def joined(
    stack: ExitStack, count: int, *, generation: int = 1, resume_step: int = 0, places: dict[int, Place] | None = None
) -> list[Rank]:
    """Ranks on nodes of their own that have begun a generation."""
    ranks = [Rank(number, stack, seed=number) for number in range(count)]
    join(ranks, generation=generation, resume_step=resume_step, places=places)
    return ranks


def join(ranks: list[Rank], *, generation: int, resume_step: int, places: dict[int, Place] | None = None) -> None:
    members = [Place(rank.number, "127.0.0.1", rank.snapshots.port) for rank in ranks]
    for number, place in (places or {}).items():
        members[number] = place
    for rank in ranks:
        rank.snapshots.join(
            rank.shard, rank=rank.number, places=members, generation=generation, resume_step=resume_step, agree=local
        )


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return list(first) == list(second) and all(torch.equal(first[name], second[name]) for name in first)


def test_a_newcomer_gets_the_lost_shard_from_its_keeper_bit_for_bit_and_goes_on_the_same() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        ranks[0].train(1.0)
        assert ranks[0].snapshots.take(1)
        assert ranks[0].snapshots.wait() == ""
        saved = ranks[0].state()
        ranks[0].train(2.0)
        after, drawn = ranks[0].state(), (np.random.random(), random.random(), torch.rand(1))
        assert ranks[1].snapshots.held() == [(0, 1)]
        ranks[0].snapshots.close()

        newcomer = Rank(0, stack, seed=9)
        join([newcomer, ranks[1]], generation=2, resume_step=1)
        assert newcomer.snapshots.restore(1, [1]) == "buddy"
        assert same(newcomer.state(), saved)
        assert newcomer.counter.value == 1
        assert newcomer.snapshots.held() == [(0, 1)], "and can give it back from its own memory"
        newcomer.train(2.0)
        assert same(newcomer.state(), after)
        assert (np.random.random(), random.random(), torch.rand(1)) == drawn


def test_a_survivor_goes_back_to_its_own_snapshot() -> None:
    with ExitStack() as stack:
        (rank,) = joined(stack, 1)
        rank.train(1.0)
        rank.snapshots.take(1)
        assert rank.snapshots.wait() == ""
        saved = rank.state()
        rank.train(2.0)
        join([rank], generation=2, resume_step=1)
        assert rank.snapshots.restore(1) == "memory"
        assert same(rank.state(), saved)


@pytest.mark.parametrize("knows", [True, False], ids=["its keeper has it", "its keeper is new"])
def test_what_all_went_back_to_is_not_copied_again_and_brought_only_to_a_keeper_that_does_not_have_it(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    def never(*_arguments: object, **_options: object) -> None:
        raise AssertionError("nothing is to be copied")

    with ExitStack() as stack:
        ranks = joined(stack, 2)
        ranks[0].train(1.0)
        ranks[0].snapshots.take(1)
        assert ranks[0].snapshots.wait() == ""
        keeper = ranks[1] if knows else Rank(1, stack, seed=7)
        place = Place(1, "127.0.0.1", keeper.snapshots.port, held=tuple(keeper.snapshots.held()))
        join([ranks[0], keeper], generation=2, resume_step=1, places={1: place})
        monkeypatch.setattr("holdfast_runtime.snapshots.memory.Copy", never)
        brought: list[object] = []
        monkeypatch.setattr("holdfast_runtime.snapshots.memory.bring", lambda *given, **_: brought.append(given))

        assert ranks[0].snapshots.take(1)
        assert ranks[0].snapshots.wait() == ""
        assert len(brought) == (0 if knows else 1)


def test_own_memory_that_has_changed_is_not_used_and_the_keepers_is() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        ranks[0].train(1.0)
        ranks[0].snapshots.take(1)
        ranks[0].snapshots.wait()
        saved = ranks[0].state()
        block = ranks[0].snapshots._keeper.find(0, 1)
        assert block is not None
        block.data[5] ^= 1
        join(ranks, generation=2, resume_step=1)
        assert ranks[0].snapshots.restore(1, [1]) == "buddy"
        assert same(ranks[0].state(), saved)


def test_a_keepers_memory_that_has_changed_is_refused_and_the_next_donor_asked() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        ranks[0].snapshots.take(0)
        ranks[0].snapshots.wait()
        block = ranks[1].snapshots._keeper.find(0, 0)
        assert block is not None
        block.data[-1] ^= 1
        newcomer = Rank(0, stack, seed=9)
        before = newcomer.state()
        join([newcomer, ranks[1]], generation=2, resume_step=0)
        with pytest.raises(
            SnapshotError, match=r"step 0 is lost: rank 1: .* arrived damaged: the checksum of chunk 0 differs"
        ):
            newcomer.snapshots.restore(0, [1])
        assert same(newcomer.state(), before), "nothing of it was taken over"


@contextmanager
def proxy(port: int, *, damage_at: int) -> Iterator[int]:
    """A link on which one byte, counted from the end of what is sent in one go, changes."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            client, _ = door.accept()
            with client, socket.create_connection(("127.0.0.1", port)) as server:
                back = threading.Thread(target=_pump, args=(server, client, None), daemon=True)
                back.start()
                _pump(client, server, damage_at)

    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield door.getsockname()[1]


def _pump(source: socket.socket, target: socket.socket, damage_at: int | None) -> None:
    passed = 0
    with contextlib.suppress(OSError):
        while data := bytearray(source.recv(65536)):
            if damage_at is not None and passed <= damage_at < passed + len(data):
                data[damage_at - passed] ^= 1
            passed += len(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_a_byte_that_changes_on_the_way_is_found_and_the_snapshot_is_not_safe() -> None:
    with ExitStack() as stack:
        ranks = [Rank(number, stack, seed=number) for number in range(2)]
        seen: list[int] = []
        with _counting(ranks[1].snapshots.port, seen) as port:
            join(ranks, generation=1, resume_step=0, places={1: Place(1, "127.0.0.1", port)})
            ranks[0].snapshots.take(0)
            assert ranks[0].snapshots.wait() == ""
        with proxy(ranks[1].snapshots.port, damage_at=seen[0] - 20) as port:
            join(ranks, generation=2, resume_step=0, places={1: Place(1, "127.0.0.1", port)})
            ranks[0].snapshots.take(0)
            assert "arrived damaged: the checksum of chunk 0 differs" in ranks[0].snapshots.wait()


@contextmanager
def _counting(port: int, seen: list[int]) -> Iterator[int]:
    """A link that says how many bytes went one way."""

    def serve() -> None:
        client, _ = door.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            threading.Thread(target=_pump, args=(server, client, None), daemon=True).start()
            count = 0
            while data := client.recv(65536):
                count += len(data)
                server.sendall(data)
            seen.append(count)

    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield door.getsockname()[1]
        thread.join(DEADLINE_S)


def test_a_visitor_of_a_generation_that_is_over_is_turned_away() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        join([ranks[1]], generation=2, resume_step=0, places={})
        ranks[0].snapshots.take(0)
        assert "generation 1 is over here" in ranks[0].snapshots.wait()


def test_a_visitor_of_the_next_generation_waits_for_it() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        ranks[0].snapshots.take(0)
        ranks[0].snapshots.wait()
        newcomer = Rank(0, stack, seed=9)
        members = [Place(0, "127.0.0.1", newcomer.snapshots.port), Place(1, "127.0.0.1", ranks[1].snapshots.port)]
        newcomer.snapshots.join(newcomer.shard, rank=0, places=members, generation=2, resume_step=0, agree=local)
        found: list[str] = []
        fetching = threading.Thread(target=lambda: found.append(newcomer.snapshots.restore(0, [1])))
        fetching.start()
        fetching.join(0.2)
        assert fetching.is_alive()
        ranks[1].snapshots.leave()
        ranks[1].snapshots.join(ranks[1].shard, rank=1, places=members, generation=2, resume_step=0, agree=local)
        fetching.join(DEADLINE_S)
        assert found == ["buddy"]


def test_a_rank_that_is_no_ward_cannot_leave_its_shard() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 4)
        places = {1: Place(1, "127.0.0.1", ranks[3].snapshots.port)}
        join([ranks[0], *ranks[1:]], generation=2, resume_step=0, places=places)
        ranks[0].snapshots.take(0)
        assert "rank 0's shard is not kept here, those of [2] are" in ranks[0].snapshots.wait()


def test_a_dead_keeper_is_a_problem_that_the_next_snapshot_gets_over() -> None:
    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as door:
        closed = door.getsockname()[1]
        door.close()
        ranks = joined(stack, 2, places={1: Place(1, "127.0.0.1", closed)})
        assert ranks[0].snapshots.take(2)
        assert "the snapshot of step 2 is not safe" in ranks[0].snapshots.wait()
        join(ranks, generation=2, resume_step=0)
        assert ranks[0].snapshots.take(4)
        assert ranks[0].snapshots.wait() == ""
        assert ranks[1].snapshots.held() == [(0, 4)]


def test_what_was_snapshot_after_the_step_that_counts_is_forgotten() -> None:
    with ExitStack() as stack:
        ranks = joined(stack, 2)
        for step in (2, 4):
            ranks[0].snapshots.take(step)
            ranks[0].snapshots.wait()
        assert ranks[1].snapshots.held() == [(0, 2), (0, 4)]
        join(ranks, generation=2, resume_step=2)
        assert [rank.snapshots.held() for rank in ranks] == [[(0, 2)]] * 2


@settings(deadline=None, max_examples=15)
@given(
    rounds=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=6),
    impatient=st.booleans(),
)
def test_there_is_always_a_step_that_every_rank_and_every_keeper_has(
    rounds: list[tuple[bool, bool, bool]], impatient: bool
) -> None:
    """Whatever transfers fail: the agreed step is whole at three ranks and at their keepers."""
    with ExitStack() as stack:
        ranks = joined(stack, 3)
        numbers: list[int] = []
        for rank in ranks:
            rank.snapshots._generation = _agreeing(rank.snapshots._generation, numbers)
        for step, failing in enumerate([(False,) * 3, *rounds], start=1):
            numbers[:] = [min(rank.snapshots._safe for rank in ranks), int(all(_idle(rank) for rank in ranks))]
            for rank, fails in zip(ranks, failing, strict=True):
                rank.snapshots._bring = _failing if fails else type(rank.snapshots)._bring.__get__(rank.snapshots)  # type: ignore[method-assign]
                rank.snapshots.take(step)
            if not impatient or step == 1:
                for rank in ranks:
                    rank.snapshots.wait()
            agreed = {rank.snapshots.agreed_step for rank in ranks}
            assert len(agreed) == 1
            if step > 1:
                for rank in ranks:
                    keeper = ranks[keepers([Spot(node) for node in range(3)]).of[rank.number]]
                    assert (rank.number, min(agreed)) in rank.snapshots.held()
                    assert (rank.number, min(agreed)) in keeper.snapshots.held()
        for rank in ranks:
            rank.snapshots.wait()


def _agreeing(generation: Any, numbers: list[int]) -> Any:
    return replace(generation, agree=lambda _: tuple(numbers))


def _idle(rank: Rank) -> bool:
    worker = rank.snapshots._worker
    return worker is None or not worker.is_alive()


def _failing(*_: Any) -> None:
    raise OSError("link cut")


def test_a_snapshot_of_another_model_is_refused_before_anything_changes() -> None:
    with ExitStack() as stack:
        small, large = Rank(0, stack, width=4), Rank(0, stack, width=5)
        join([small], generation=1, resume_step=0)
        small.snapshots.take(0)
        small.snapshots.wait()
        block = small.snapshots._keeper.find(0, 0)
        assert block is not None
        before = large.state()
        with pytest.raises(SnapshotError, match=r"parameter 0.weight, and the model has torch.float32 \[3, 5\]"):
            large.shard.load(block)
        assert same(large.state(), before)


def test_snapshots_between_generations_are_refused() -> None:
    with ExitStack() as stack:
        rank = Rank(0, stack)
        with pytest.raises(SnapshotError, match=r"need join\(\) first"):
            rank.snapshots.take(0)
