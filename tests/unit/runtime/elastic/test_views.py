"""The view of another size: who has a rank, and that all parts of the size before are put together anew."""

from dataclasses import replace

from holdfast_runtime.membership import (
    Asked,
    NoFurtherView,
    Policy,
    RankStatus,
    Slot,
    Status,
    View,
    next_view,
    part_number,
)

POLICY = Policy(world_size=4, sizes=(2, 3, 4))
STEP = 7


def rank(number: int, *, size: int, **facts: object) -> RankStatus:
    made = RankStatus(
        slot=Slot(number, 0),
        rank=number,
        committed_step=STEP,
        state="valid",
        twins=(),
        part=part_number(number, size),
    )
    return replace(made, **facts)  # type: ignore[arg-type]


def running(*, size: int, nodes: int = 4) -> View:
    return View(
        generation=3,
        nodes=(0,) * nodes,
        ranks=tuple(RankStatus(slot=Slot(number, 0), rank=number, port=1) for number in range(size)),
        resume_step=1,
    )


def told(*items: RankStatus, asked: int = 0, known: int = STEP) -> list[Status]:
    wish = Asked(1, asked) if asked else Asked()
    return [
        Status(node=item.slot.node, incarnation=0, ranks=(item,), known_step=known, asked=wish, places=1)
        for item in items
    ]


def view_of(committed: View, statuses: list[Status], policy: Policy = POLICY) -> View:
    found = next_view(committed, statuses, policy=policy)
    assert isinstance(found, View), found
    return found


def test_a_smaller_size_takes_the_parts_of_all_ranks_of_the_larger_one_and_loses_no_step() -> None:
    statuses = told(*(rank(number, size=4) for number in range(4)), asked=2)

    view = view_of(running(size=4), statuses)

    assert [item.slot.node for item in view.ranks] == [0, 1]
    assert [item.slot.node for item in view.leavers] == [2, 3]
    assert (view.cut, view.parts, set(view.sources)) == (4, ((0,), (1,), (2,), (3,)), {"parts"})
    assert (view.resume_step, view.lost_steps, view.asked) == (STEP, 0, Asked(1, 2))


def test_processes_that_wait_take_ranks_of_a_larger_size_whatever_old_part_they_still_have() -> None:
    old = rank(2, size=4, rank=-1, committed_step=STEP - 3)
    statuses = told(rank(0, size=2), rank(1, size=2), old, asked=3)

    view = view_of(replace(running(size=2), asked=Asked(1, 2)), statuses)

    assert [item.slot.node for item in view.ranks] == [0, 1, 2]
    assert (view.cut, view.parts) == (2, ((0,), (1,)))
    assert view.resume_step == STEP


def test_a_lost_part_comes_from_its_keeper_and_all_go_back_to_that_step() -> None:
    kept = [(part_number(number, 4), STEP - 1) for number in range(4)]
    statuses = told(
        rank(0, size=4, snapshots=(kept[0], kept[3])),
        rank(1, size=4, snapshots=(kept[1], kept[0])),
        rank(2, size=4, snapshots=(kept[2], kept[1])),
    )

    view = view_of(running(size=4), statuses)

    assert (len(view.ranks), view.cut, view.resume_step, view.lost_steps) == (3, 4, STEP - 1, 1)
    assert view.parts == ((0, 1), (1, 2), (2,), (0,))


def test_a_part_that_nobody_has_ends_the_job_with_that_reason() -> None:
    statuses = told(*(rank(number, size=4) for number in range(3)))

    found = next_view(running(size=4), statuses, policy=POLICY)

    assert isinstance(found, NoFurtherView)
    assert found == (
        f"no process has the state of step {STEP}, and there is no checkpoint; rank 3 is lost, and no process has the "
        "state of rank 3"
    )


def test_where_the_size_stays_ranks_keep_what_they_have() -> None:
    view = view_of(running(size=4), told(*(rank(number, size=4) for number in range(4))))

    assert (view.cut, view.parts, set(view.sources)) == (0, (), {"memory"})


def test_parts_of_two_sizes_are_never_mixed() -> None:
    mixed = told(rank(0, size=2), rank(1, size=4), rank(2, size=4), rank(3, size=4))

    assert isinstance(next_view(running(size=4), mixed, policy=POLICY), NoFurtherView)


def test_a_node_that_leaves_gets_no_rank_and_gives_its_part() -> None:
    statuses = told(*(rank(number, size=4) for number in range(4)))
    statuses[0] = replace(statuses[0], leaving=True)

    view = view_of(running(size=4), statuses)

    assert [item.slot.node for item in view.ranks] == [3, 1, 2]
    assert view.nodes[0] == -1
    assert [item.slot.node for item in view.leavers] == [0]
    assert view.parts == ((3,), (1,), (2,), (0,))


def test_replicas_of_another_size_need_no_parts() -> None:
    statuses = told(*(rank(number, size=4, part=-1, twins=None) for number in range(4)), asked=2)

    view = view_of(running(size=4), statuses)

    assert (len(view.ranks), view.cut, set(view.sources)) == (2, 0, {"memory"})
