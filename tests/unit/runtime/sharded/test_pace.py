"""When the next snapshot of a sharded job is due, and whether any are."""

import pytest
import torch

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.sharded import (
    Facts,
    JobSnapshots,
    RankPlace,
    SnapshotPace,
    agreed_snapshot,
    alike,
    check_length,
    check_memory,
    disagreement,
    in_one_place,
    snapshots_asked,
    survival_asked,
    survives,
    twins,
)
from holdfast_runtime.snapshots import Shard


def facts(**changes: object) -> Facts:
    values: dict[str, object] = {"node": 0, "host": "a", "keeper": 1, "every": 0, "held": (), "groups": "g"}
    return Facts(**{**values, "holds": "h", "torch": "2.13.0", **changes})  # type: ignore[arg-type]


def test_the_pace_follows_the_cost() -> None:
    pace = SnapshotPace(every=0)
    pace.begun(0, at_s=0.0, spent_s=0.0)

    assert [pace.is_due(step) for step in (1, 2)] == [False, True]
    # 0.3 s of CPU for one, in steps of 1 s: 3 % of ten of them
    assert pace.updates_to_next(2, at_s=2.0, spent_s=0.3) == 10
    assert pace.updates_to_next(2, at_s=2.0, spent_s=0.0) == 1
    pace.begun(2, at_s=2.0, spent_s=0.3, every=10)
    assert [pace.is_due(step) for step in (11, 12, 13)] == [False, True, True], "again until one could be taken"


def test_a_given_pace_is_kept() -> None:
    pace = SnapshotPace(every=4)
    pace.begun(4, at_s=0.0, spent_s=0.0)

    assert [step for step in range(5, 13) if pace.is_due(step)] == [8, 12]
    assert pace.updates_to_next(8, at_s=1.0, spent_s=100.0) == 4


@pytest.mark.parametrize(
    ("places", "needed"),
    [
        pytest.param([(0, "a"), (0, "b")], True, id="each part once"),
        pytest.param([(0, "a"), (0, "a")], False, id="twins on the only node"),
        pytest.param([(0, "a"), (0, "a"), (1, "b"), (1, "b")], True, id="twins on one node of two"),
        pytest.param([(0, "a"), (0, "b"), (1, "a"), (1, "b")], False, id="twins on two nodes"),
    ],
)
def test_snapshots_are_taken_where_some_part_is_in_one_place(places: list[tuple[int, str]], needed: bool) -> None:
    assert in_one_place([facts(node=node, holds=holds) for node, holds in places]) is needed


def test_twins_have_the_same_part() -> None:
    found = [facts(holds=name) for name in "abab"]

    assert [twins(found, rank) for rank in range(4)] == [(2,), (3,), (0,), (1,)]
    assert alike(found) == ((0, 2), (1, 3))


def test_the_agreed_snapshot_is_the_newest_that_is_there_of_every_rank() -> None:
    found = [facts(held=((0, 4), (1, 4), (0, 6))), facts(held=((1, 6), (0, 8), (1, 8)))]

    assert [agreed_snapshot(found, until=step) for step in (9, 7, 5, 3)] == [8, 6, 4, -1]


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        (
            {"groups": "x"},
            "rank 2 made other groups, or in another order, than the other ranks; every rank has to make",
        ),
        ({"torch": "2.12.0"}, "torch is 2.12.0 at rank 2, and not as at the others; install the same everywhere"),
        ({"every": 5}, "snapshot_every is 5 at rank 2, and not as at the others"),
        ({"every": -1}, 'snapshot_every is "never" at rank 2'),
    ],
)
def test_ranks_that_cannot_train_together_are_named(odd: dict[str, object], what: str) -> None:
    assert disagreement([facts(), facts(), facts(**odd), facts()]).startswith(what)
    assert disagreement([facts()] * 4) == ""


def test_what_snapshot_every_may_be() -> None:
    assert [snapshots_asked(given) for given in (None, "never", 3)] == [0, None, 3]
    for wrong in (0, -1, "often", True):
        with pytest.raises(UnsupportedError, match=f"snapshot_every is {wrong!r}; allowed: 1 or more updates"):
            snapshots_asked(wrong)
    with pytest.raises(UnsupportedError, match="snapshot_every is 9 and the run has 8 updates"):
        check_length(9, total=8)
    check_length(8, total=8)


def test_memory_that_does_not_suffice_is_refused_before_the_first_step() -> None:
    model = torch.nn.Linear(999, 1000)  # 4 MB
    shard = Shard(model, torch.optim.Adam(model.parameters()))

    check_memory(shard, ranks=2, available=96_000_000)
    with pytest.raises(
        UnsupportedError, match=r"need about 0.1 GB of host memory on a node of 2 ranks .* 0.1 GB are free"
    ):
        check_memory(shard, ranks=2, available=95_000_000)
    check_memory(shard, ranks=2, available=95_000_000, held=1_000_000)


def test_memory_that_ranks_have_for_snapshots_is_not_asked_for_again_after_a_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a host with just enough would do until the first recovery."""
    model = torch.nn.Linear(999, 1000)
    monkeypatch.setattr("holdfast_runtime.sharded.job_snapshots.available_bytes", lambda: 50_000_000)
    shard = Shard(model, torch.optim.Adam(model.parameters()))
    kept = JobSnapshots(lambda: shard, every=2, transfer_s=5.0)
    told = [facts(holds=str(rank), held=held) for rank, held in enumerate((((0, 4),), ((1, 4),), ()))]
    try:
        for rank in range(3):
            kept.join(told, RankPlace(rank=rank, generation=3, resume_step=4), agree=lambda numbers: numbers)
        with pytest.raises(UnsupportedError, match="on a node of 2 ranks"):
            kept.join([*told, told[2]], RankPlace(rank=0, generation=3, resume_step=4), agree=lambda numbers: numbers)
    finally:
        kept.leave()
        kept._snapshots.close()


@pytest.mark.parametrize(
    ("racks", "snapshots", "said"),
    [
        (("", ""), True, "any one node may be lost"),
        (("a", "b"), True, "any one rack may be lost"),
        (("a", "b"), False, "no process may be lost without going back to a checkpoint: no other one has"),
    ],
)
def test_what_may_be_lost_follows_from_what_ranks_tell(racks: tuple[str, str], snapshots: bool, said: str) -> None:
    told = [facts(node=node, rack=rack, holds=str(node)) for node, rack in enumerate(racks)]
    assert str(survives(told, snapshots=snapshots)).startswith(said)


@pytest.mark.parametrize(("asked", "reach"), [(None, "nothing"), ("node", "node"), ("rack", "rack")])
def test_what_is_to_be_survived_is_asked_for_by_name(asked: str | None, reach: str) -> None:
    assert survival_asked(asked) == reach


def test_anything_else_to_be_survived_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="survive is 'zone'; allowed: 'nothing', 'process', 'node', 'rack'"):
        survival_asked("zone")
