"""A state that nobody has is not waited for; one that a launcher out of reach may have is."""

import asyncio

import pytest

from holdfast_runtime import membership as m
from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.generation import Agreement, Effects
from holdfast_runtime.launcher.ranks import LocalSlots


def told(*, size: int, step: int) -> list[str]:
    """What the launcher stops with, when its only process knows nothing and ``step`` updates are known of."""
    stops: list[str] = []

    async def run() -> None:
        slots = LocalSlots(node=0, ranks=1, spares=0)
        effects = Effects(
            send=lambda _to, _message: None,
            leave=lambda _generation, _reason: None,
            install=lambda _view: stops.append("a view"),
            await_answers=lambda _nodes: None,
            stop=stops.append,
            policy=lambda: m.Policy(world_size=1),
        )
        agreement = Agreement(slots=slots, size=size, incarnation=0, deadlines=Deadlines(), effects=effects)
        agreement.trouble("rank 0 is lost")
        slot = m.RankStatus(slot=m.Slot(0, 0, 1), rank=-1)
        agreement.ready(m.Status(node=0, incarnation=0, ranks=(slot,), known_step=step))
        for _ in range(20):
            await asyncio.sleep(0)
        agreement.changed()
        await asyncio.sleep(0.05)
        agreement.close()

    asyncio.run(run())
    return stops


def test_a_job_whose_state_nobody_has_ends_at_once_where_all_launchers_are_in_reach() -> None:
    reason = "rank 0 is lost; no process has the state of step 5, and there is no checkpoint"
    assert told(size=1, step=5)[0] == reason


@pytest.mark.parametrize(("size", "step", "expected"), [(3, 5, []), (1, 0, ["a view"])])
def test_it_does_not_end_where_another_may_have_it_or_nothing_is_lost(
    size: int, step: int, expected: list[str]
) -> None:
    assert told(size=size, step=step) == expected
