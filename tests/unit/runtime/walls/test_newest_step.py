"""What launchers remember of processes that are gone: the newest step, which nothing goes back behind in silence."""

from dataclasses import replace

from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import Policy, RankStatus, Slot, Status, View, next_view

POLICY = Policy(world_size=2)
BEFORE = View(
    generation=4,
    nodes=(0, 0),
    ranks=(RankStatus(slot=Slot(0, 0), rank=0), RankStatus(slot=Slot(1, 0), rank=1)),
    resume_step=3,
)


def statuses(*ranks: RankStatus, known: tuple[int, int] = (0, 0), checkpoint: int = -1) -> list[Status]:
    return [
        Status(
            node=node,
            incarnation=0,
            ranks=tuple(item for item in ranks if item.slot.node == node),
            checkpoint_step=checkpoint,
            known_step=known[node],
        )
        for node in (0, 1)
    ]


def process(node: int, **facts: object) -> RankStatus:
    return replace(RankStatus(slot=Slot(node, 0), rank=node), **facts)  # type: ignore[arg-type]


def test_a_step_that_only_a_lost_process_had_finished_is_done_again_and_not_in_silence() -> None:
    """Rank 1 finished step 9 and died; rank 0 is still at 8, and has not received the last sums of that step."""
    alive = (process(0, state="valid", committed_step=8), process(1, rank=-1))

    before = next_view(BEFORE, statuses(*alive, known=(8, 8)), policy=POLICY)
    after = next_view(BEFORE, statuses(*alive, known=(8, 9)), policy=POLICY)

    assert isinstance(before, View)
    assert isinstance(after, View), after
    assert (before.resume_step, before.lost_steps) == (8, 0)
    assert (after.resume_step, after.lost_steps, after.sources) == (8, 1, ("memory", "peer"))


def test_more_than_the_step_that_runs_is_never_done_again_without_leave() -> None:
    alive = (process(0, state="valid", committed_step=8), process(1, rank=-1))

    refused = next_view(BEFORE, statuses(*alive, known=(8, 10)), policy=POLICY)
    allowed = next_view(BEFORE, statuses(*alive, known=(8, 10)), policy=replace(POLICY, lost_steps_allowed=2))

    assert refused == (
        "going on from step 8 would lose 2 committed steps, and 0 are allowed; --allow-loss 2 accepts going back"
    )
    assert isinstance(allowed, View)
    assert (allowed.resume_step, allowed.lost_steps) == (8, 2)


def test_a_committed_step_is_not_done_again_by_another_number_of_ranks_whose_bits_are_others() -> None:
    alone = (process(0, state="valid", committed_step=8),)
    elastic = replace(POLICY, sizes=(1, 2))

    refused = next_view(BEFORE, statuses(*alone, known=(8, 9)), policy=elastic)
    same = next_view(BEFORE, statuses(*alone, known=(8, 8)), policy=elastic)

    assert "would lose 1 committed steps" in str(refused)
    assert isinstance(same, View)
    assert len(same.ranks) == 1


def test_a_job_that_has_trained_never_begins_afresh_because_all_its_processes_died_at_once() -> None:
    first, fresh = View(generation=0, nodes=(0, 0)), (process(0, rank=-1), process(1, rank=-1))

    begun = next_view(first, statuses(*fresh), policy=POLICY)
    after = next_view(first, statuses(*fresh, known=(0, 5)), policy=POLICY)
    older = next_view(first, statuses(*fresh, known=(0, 5), checkpoint=2), policy=POLICY)

    assert isinstance(begun, View)
    assert after == "no process has the state of step 5, and there is no checkpoint"
    assert older == (
        "going on from step 2 would lose 3 committed steps, and 0 are allowed; the newest complete checkpoint is of "
        "step 2; --allow-loss 3 accepts going back"
    )


def test_a_state_that_is_torn_is_nobodys_source() -> None:
    torn = (process(0, state="torn", committed_step=9), process(1, rank=-1))

    assert next_view(BEFORE, statuses(*torn), policy=POLICY) == (
        "no process has the state of step 9, and there is no checkpoint"
    )
    mixed = (process(0, state="valid", committed_step=8), process(1, state="torn", committed_step=9))
    assert next_view(BEFORE, statuses(*mixed), policy=POLICY) == (
        "going on from step 8 would lose 1 committed steps, and 0 are allowed; --allow-loss 1 accepts going back"
    )


def test_a_launcher_remembers_the_newest_step_of_its_processes_and_tells_it() -> None:
    slots = LocalSlots(node=0, ranks=2, spares=0)
    for step in (3, 9, 4):
        slots.learn(step)

    assert slots.known_step == 9
    assert slots.status(incarnation=0, host="h").known_step == 9


def test_steps_that_are_done_again_are_not_lost_a_second_time_by_a_change_before_they_are() -> None:
    slots = LocalSlots(node=0, ranks=1, spares=0)
    slots.learn(9)
    snapshots = ((0, 6), (1, 6))
    newcomer = process(1, rank=-1)
    keeper = process(0, state="valid", committed_step=8, twins=(), snapshots=snapshots)
    back = next_view(BEFORE, statuses(keeper, newcomer, known=(slots.known_step, 0)), policy=POLICY)
    assert isinstance(back, View)
    assert (back.resume_step, back.lost_steps) == (6, 3)

    slots.go_on(back)
    again = (process(node, state="valid", committed_step=7, twins=()) for node in (0, 1))
    after = next_view(back, statuses(*again, known=(slots.known_step, 0)), policy=POLICY)

    assert isinstance(after, View), after
    assert (after.resume_step, after.lost_steps) == (7, 0)
