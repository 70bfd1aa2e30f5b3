"""The next view: survivors keep their ranks, spares take the lost ones, and nothing is lost unless it is allowed."""

import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.membership import Policy, RankStatus, Slot, Status, View, next_view

GENESIS = View(generation=0, nodes=(0, 0, 0))
REPLICAS = Policy(world_size=4)


def status(node: int, *ranks: RankStatus, checkpoint_step: int = -1) -> Status:
    return Status(node=node, incarnation=0, ranks=ranks, checkpoint_step=checkpoint_step)


def process(node: int, index: int, **facts: object) -> RankStatus:
    return replace(RankStatus(slot=Slot(node, index), rank=-1), **facts)  # type: ignore[arg-type]


def first() -> View:
    """Two nodes of two ranks and a spare node of two."""
    view = next_view(GENESIS, [status(node, process(node, 0), process(node, 1)) for node in range(3)], policy=REPLICAS)
    assert isinstance(view, View)
    return view


def running(view: View, *, step: int) -> list[RankStatus]:
    """The processes of a view after so many updates; spares have no state."""
    ranks = [replace(item, state="valid", committed_step=step) for item in view.ranks]
    return [*ranks, *(RankStatus(slot=slot, rank=-1) for slot in view.spares)]


def by_node(processes: list[RankStatus]) -> list[Status]:
    nodes = sorted({item.slot.node for item in processes})
    return [status(node, *(item for item in processes if item.slot.node == node)) for node in nodes]


def test_the_first_view_fills_ranks_in_the_order_of_nodes_and_the_rest_are_spares() -> None:
    view = first()

    assert [item.slot for item in view.ranks] == [Slot(0, 0), Slot(0, 1), Slot(1, 0), Slot(1, 1)]
    assert view.spares == (Slot(2, 0), Slot(2, 1))
    assert (view.generation, view.resume_step, set(view.sources)) == (1, 0, {"fresh"})


def test_a_job_that_starts_again_goes_on_from_its_checkpoint() -> None:
    statuses = [status(node, process(node, 0), process(node, 1), checkpoint_step=40) for node in range(2)]

    view = next_view(replace(GENESIS, nodes=(0, 0)), statuses, policy=REPLICAS)

    assert isinstance(view, View)
    assert (view.resume_step, set(view.sources), view.lost_steps) == (40, {"checkpoint"}, 0)


def test_a_spare_takes_the_lost_rank_and_gets_its_state_from_a_survivor() -> None:
    processes = [item for item in running(first(), step=7) if item.slot != Slot(1, 0)]

    view = next_view(first(), by_node(processes), policy=REPLICAS)

    assert isinstance(view, View)
    assert [item.slot for item in view.ranks] == [Slot(0, 0), Slot(0, 1), Slot(2, 0), Slot(1, 1)]
    assert view.sources == ("memory", "memory", "peer", "memory")
    assert view.donors[2] == (3, 0, 1)
    assert (view.resume_step, view.lost_steps) == (7, 0)


def spares(view: View, *built: RankStatus) -> View | str:
    """The view after the loss of ranks 1 and 2, with these processes that have none."""
    processes = [item for item in running(view, step=7) if item.rank in (0, 3)]
    return next_view(view, by_node([*processes, *built]), policy=REPLICAS)


def test_a_lost_rank_goes_to_the_spare_that_is_built_for_it_wherever_that_is() -> None:
    view = spares(first(), process(0, 2, built=2), process(2, 0, built=1))

    assert isinstance(view, View)
    assert [item.slot for item in view.ranks] == [Slot(0, 0), Slot(2, 0), Slot(0, 2), Slot(1, 1)]


def test_a_spare_that_is_built_for_another_rank_takes_one_only_where_nothing_else_is_there() -> None:
    view = spares(first(), process(0, 2, built=3), process(2, 0), process(2, 1))

    assert isinstance(view, View)
    assert [item.slot for item in view.ranks] == [Slot(0, 0), Slot(2, 0), Slot(2, 1), Slot(1, 1)]
    assert view.spares == (Slot(0, 2),)

    short = spares(first(), process(0, 2, built=3), process(2, 0))

    assert isinstance(short, View)
    assert [item.slot for item in short.ranks] == [Slot(0, 0), Slot(2, 0), Slot(0, 2), Slot(1, 1)]


def test_a_spare_whose_model_can_become_that_of_another_rank_comes_before_one_that_has_none() -> None:
    view = spares(first(), process(0, 2), process(2, 0, built=2), process(2, 1, built=3, moves=True))

    assert isinstance(view, View)
    assert [item.slot for item in view.ranks] == [Slot(0, 0), Slot(2, 1), Slot(2, 0), Slot(1, 1)]


def test_who_committed_the_step_gives_it_to_those_that_did_not() -> None:
    processes = running(first(), step=7)
    processes[1] = replace(processes[1], committed_step=8)
    processes[3] = replace(processes[3], state="torn")

    view = next_view(first(), by_node(processes), policy=REPLICAS)

    assert isinstance(view, View)
    assert view.resume_step == 8
    assert view.sources == ("peer", "memory", "peer", "peer")
    assert [donors for donors in view.donors if donors] == [(1,)] * 3


def test_without_a_spare_there_is_no_view_and_the_reason_counts() -> None:
    processes = running(first(), step=7)[:3]

    assert next_view(first(), by_node(processes), policy=REPLICAS) == "3 processes are available, 4 are required"


def test_the_loss_of_every_copy_is_refused_and_never_becomes_step_zero() -> None:
    spares = [RankStatus(slot=Slot(2, index), rank=-1) for index in range(4)]

    reason = next_view(replace(first(), resume_step=7), by_node(spares), policy=REPLICAS)

    assert reason == "no process has the state of step 7, and there is no checkpoint; ranks 0, 1, 2, 3 are lost"


def test_a_state_that_is_lost_before_the_first_update_has_all_begin_again() -> None:
    begun = [replace(item, twins=(), committed_step=0) for item in running(first(), step=0) if item.rank != 1]
    spare = RankStatus(slot=Slot(2, 0), rank=-1)

    view = next_view(first(), by_node([*begun, spare]), policy=REPLICAS)
    known = [replace(each, known_step=1) for each in by_node([*begun, spare])]

    assert isinstance(view, View)
    assert (view.resume_step, view.lost_steps, set(view.sources)) == (0, 0, {"fresh"})
    assert "no process has the state of step 1" in str(next_view(first(), known, policy=REPLICAS))


def test_an_older_checkpoint_is_taken_only_by_a_job_that_allows_the_loss() -> None:
    spares = [status(2, *(process(2, index) for index in range(4)), checkpoint_step=5)]
    before = replace(first(), resume_step=7)

    refused = next_view(before, spares, policy=REPLICAS)
    allowed = next_view(before, spares, policy=replace(REPLICAS, lost_steps_allowed=2))

    assert refused == (
        "going on from step 5 would lose 2 committed steps, and 0 are allowed; ranks 0, 1, 2, 3 are lost; the newest "
        "complete checkpoint is of step 5; --allow-loss 2 accepts going back"
    )
    assert isinstance(allowed, View)
    assert (allowed.resume_step, allowed.lost_steps, set(allowed.sources)) == (5, 2, {"checkpoint"})


def test_a_sharded_job_goes_back_to_the_newest_snapshot_that_every_rank_has() -> None:
    policy = Policy(world_size=4)
    processes = [
        replace(item, twins=(), snapshots=((item.rank, 4), ((item.rank - 1) % 4, 4))) if item.rank >= 0 else item
        for item in running(first(), step=6)
        if item.slot != Slot(0, 1)
    ]

    view = next_view(first(), by_node(processes), policy=policy)

    assert isinstance(view, View)
    assert (view.resume_step, view.lost_steps) == (4, 2)
    assert view.sources == ("memory", "buddy", "memory", "memory")
    assert view.donors[1] == (2,)


def hsdp(step: int) -> list[RankStatus]:
    """Ranks 0 and 2 have the same shard, and so have 1 and 3; two spares."""
    return [
        replace(item, twins=((item.rank + 2) % 4,)) if item.rank >= 0 else item for item in running(first(), step=step)
    ]


def test_a_lost_rank_gets_its_state_from_its_twin_and_from_nobody_else() -> None:
    processes = [item for item in hsdp(7) if item.rank != 1]

    view = next_view(first(), by_node(processes), policy=REPLICAS)

    assert isinstance(view, View)
    assert (view.resume_step, view.lost_steps) == (7, 0)
    assert (view.sources[1], view.donors[1]) == ("peer", (3,))


def test_without_twin_and_snapshot_there_is_no_view() -> None:
    processes = [item for item in hsdp(7) if item.rank not in (1, 3)]

    view = next_view(first(), by_node(processes), policy=REPLICAS)

    assert view == (
        "no process has the state of step 7, and there is no checkpoint; ranks 1, 3 are lost, and no process has the "
        "state of ranks 1, 3"
    )


def double_loss(*, done: bool = False, checkpoint: int = -1) -> View | str:
    """Ranks 0 and 1, and 2 and 3, keep each other's snapshots of step 4; 0 and 1 are lost after step 7."""
    processes = [
        replace(item, twins=(), snapshots=((item.rank, 4), (item.rank ^ 1, 4))) if item.rank >= 0 else item
        for item in running(first(), step=7)
        if item.rank not in (0, 1)
    ]
    said = [replace(each, checkpoint_step=checkpoint, done=done) for each in by_node(processes)]
    return next_view(first(), said, policy=REPLICAS)


def test_the_refusal_after_a_double_loss_names_both_ranks() -> None:
    assert double_loss() == (
        "no process has the state of step 7, and there is no checkpoint; ranks 0, 1 are lost, and no process has the "
        "state of ranks 0, 1"
    )


def test_the_refusal_after_a_double_loss_names_the_checkpoint_and_the_option_that_accepts_it() -> None:
    assert double_loss(checkpoint=5) == (
        "going on from step 5 would lose 2 committed steps, and 0 are allowed; ranks 0, 1 are lost, and no process has "
        "the state of ranks 0, 1; the newest complete checkpoint is of step 5; --allow-loss 2 accepts going back"
    )


def test_the_refusal_after_the_last_update_says_that_all_steps_are_done() -> None:
    assert str(double_loss(done=True)).startswith("all 7 steps are done, only the end was not reached; no process has")


def test_a_keeper_that_is_lost_while_it_gives_is_named_beside_the_rank_that_was_to_get_its_state() -> None:
    """Rank 0 was lost first; the process that has its rank now has no state yet."""
    processes = [
        replace(item, twins=(), snapshots=((item.rank, 4), (item.rank ^ 1, 4)))
        if item.rank in (2, 3)
        else replace(item, state="torn", committed_step=0, twins=())
        for item in running(first(), step=7)
        if item.rank != 1
    ]

    refused = next_view(first(), by_node(processes), policy=REPLICAS)

    assert str(refused).endswith("; rank 1 is lost, and no process has the state of ranks 0, 1")


def test_who_has_voted_can_finish_the_step_that_another_has_finished() -> None:
    """Rank 1 finished step 8 and was lost; its twin and rank 0 have not, but all that the update takes."""
    processes = [replace(item, prepared=True) if item.rank in (0, 3) else item for item in hsdp(7) if item.rank != 1]
    processes = [replace(item, committed_step=8) if item.rank == 2 else item for item in processes]

    view = next_view(first(), by_node(processes), policy=REPLICAS)
    known = [replace(item, committed_step=7, prepared=True) if item.rank == 2 else item for item in processes]
    told = next_view(first(), [replace(each, known_step=8) for each in by_node(known)], policy=REPLICAS)

    for found in (view, told):
        assert isinstance(found, View)
        assert (found.resume_step, found.lost_steps) == (8, 0)
        assert (found.sources, found.donors[1]) == (("memory", "peer", "memory", "memory"), (3,))


def test_a_twin_that_is_torn_gives_nothing_and_all_go_back_to_the_snapshots() -> None:
    """The steps since then were not allowed to be lost, and are not: they are done again with the same bits."""
    processes = [
        replace(item, snapshots=((item.rank, 4), ((item.rank + 1) % 4, 4))) if item.rank >= 0 else item
        for item in hsdp(6)
        if item.rank != 1
    ]
    processes = [replace(item, state="torn") if item.rank == 3 else item for item in processes]

    view = next_view(first(), by_node(processes), policy=REPLICAS)

    assert isinstance(view, View)
    assert (view.resume_step, view.lost_steps) == (4, 2)
    assert (view.sources[1], view.donors[1]) == ("buddy", (0,))
    assert view.sources[3] == "memory"


@given(
    lost=st.sets(st.integers(0, 5), max_size=6),
    steps=st.lists(st.integers(5, 6), min_size=6, max_size=6),
    torn=st.sets(st.integers(0, 3)),
)
def test_a_view_never_goes_back_and_every_missing_state_has_a_giver(
    lost: set[int], steps: list[int], torn: set[int]
) -> None:
    before = replace(first(), resume_step=5)
    processes = [
        replace(item, committed_step=steps[index], state="torn" if index in torn else item.state)
        for index, item in enumerate(running(before, step=5))
        if index not in lost
    ]

    view = next_view(before, by_node(processes), policy=REPLICAS)

    newest = max((item.committed_step for item in processes if item.state == "valid"), default=None)
    if isinstance(view, View):
        assert view.resume_step == newest
        assert len({item.slot for item in view.ranks} | set(view.spares)) == 4 + len(view.spares)
        for rank, source in enumerate(view.sources):
            giver_states = [view.ranks[giver] for giver in view.donors[rank]]
            assert (source == "peer") == bool(giver_states)
            assert all(g.committed_step == newest and g.state == "valid" for g in giver_states)
        for rank, item in enumerate(before.ranks):
            if any(process.slot == item.slot for process in processes):
                assert view.ranks[rank].slot == item.slot
    else:
        assert newest is None or len(processes) < 4 or "would lose" in view


def calls_of_a_plan(launchers: int) -> int:
    """Functions that are called for the view that follows a lost rank."""
    called = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal called
        called += event == "call"

    policy = Policy(world_size=launchers - 1)
    start = View(generation=0, nodes=(0,) * launchers)
    view = next_view(start, [status(node, process(node, 0)) for node in range(launchers)], policy=policy)
    assert isinstance(view, View)
    statuses = by_node(running(view, step=5)[1:])
    sys.setprofile(count)
    try:
        following = next_view(view, statuses, policy=policy)
    finally:
        sys.setprofile(None)
    assert isinstance(following, View)
    assert following.sources.count("peer") == 1
    return called


def test_a_view_of_twice_the_launchers_takes_twice_the_work() -> None:
    assert calls_of_a_plan(200) < 2.5 * calls_of_a_plan(100)
