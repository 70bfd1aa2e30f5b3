"""A process that is there anew is proposed with at once, but not beside a proposal that has only just been made."""

import asyncio

from holdfast_runtime import membership as m
from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.generation import PROPOSAL_PER_LAUNCHER_S, Agreement, Effects
from holdfast_runtime.launcher.ranks import LocalSlots

SIZE = 20


def proposed_after_s(*, asked: bool, waits_s: float = 0.0) -> float:
    """
    Seconds from a new process of launcher 1 to its own proposal, in the steps of the test.

    Args:
        asked: launcher 0 has just proposed.
        waits_s: the process comes so long after that.
    """
    found: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def send(_to: int, message: m.Message) -> None:
            if isinstance(message, m.Prepare):
                found.append(loop.time())

        slots = LocalSlots(node=1, ranks=1, spares=0)
        effects = Effects(
            send=send,
            leave=lambda _generation, _reason: None,
            install=lambda _view: None,
            await_answers=lambda _nodes: None,
            stop=lambda _reason: None,
            policy=lambda: m.Policy(world_size=SIZE),
        )
        agreement = Agreement(slots=slots, size=SIZE, incarnation=0, deadlines=Deadlines(), effects=effects)
        for node in (0, *range(2, SIZE)):
            agreement.found(node, 0)
        agreement.trouble("rank 1 is lost")
        if asked:
            agreement.message(0, m.Prepare(1, m.Ballot(1, 0), slots.view))
        await asyncio.sleep(waits_s)
        began_s = loop.time()
        agreement.changed()
        for _ in range(2000):
            if found:
                break
            await asyncio.sleep(0.005)
        found.append(found[0] - began_s)
        agreement.close()

    asyncio.run(run())
    return found[-1]


def test_a_new_process_waits_for_the_end_of_a_proposal_that_others_have_just_made() -> None:
    assert proposed_after_s(asked=True) >= 0.9 * PROPOSAL_PER_LAUNCHER_S * SIZE


def test_a_new_process_is_proposed_with_at_once_where_nobody_has_proposed_or_it_was_long_ago() -> None:
    until_then_s = PROPOSAL_PER_LAUNCHER_S * SIZE

    assert proposed_after_s(asked=False) < 0.9 * until_then_s
    assert proposed_after_s(asked=True, waits_s=until_then_s) < 0.9 * until_then_s
