"""A partition of an elastic job: who has ranks is one set and who votes another, and only one side can go on."""

from dataclasses import replace

import pytest

from holdfast_runtime import membership as m

STEP = 7


def decide(committed: m.View, statuses: tuple[m.Status, ...]) -> m.View:
    """A view of whoever was heard."""
    heard = {status.node for status in statuses}
    nodes = tuple(name if node in heard else -1 for node, name in enumerate(committed.nodes))
    return m.View(generation=committed.generation + 1, nodes=nodes, resume_step=STEP)


def running(me: int, *, launchers: int, ranks: frozenset[int]) -> m.Node:
    """A launcher of a job whose ranks are on some of its nodes; the others wait."""
    view = m.View(
        generation=3,
        nodes=(0,) * launchers,
        ranks=tuple(m.RankStatus(slot=m.Slot(node, 0), rank=rank) for rank, node in enumerate(sorted(ranks))),
        resume_step=STEP,
    )
    return replace(m.start(me=me, size=launchers), committed=view, up=frozenset(range(launchers)) - {me})


def goes_on(side: frozenset[int], *, launchers: int, ranks: frozenset[int]) -> bool:
    """Whether launchers that see each other alone commit a view, whoever of them proposes it."""
    nodes = {me: running(me, launchers=launchers, ranks=ranks) for me in side}
    queue: list[tuple[int, m.Action]] = []

    def did(me: int, result: tuple[m.Node, list[m.Action]]) -> None:
        nodes[me], actions = result
        queue.extend((me, action) for action in actions)

    installed = set()
    for me in sorted(side):
        for other in set(range(launchers)) - side:
            did(me, m.lost(nodes[me], other))
        did(me, m.ready(nodes[me], m.Status(node=me, incarnation=0)))
    for proposer in sorted(side):
        did(proposer, m.timer(nodes[proposer], m.PROPOSE, decide=decide))
        while queue:
            me, action = queue.pop(0)
            if isinstance(action, m.Send) and action.to in side:
                did(action.to, m.message(nodes[action.to], me, action.message, decide=decide))
            installed |= {me} if isinstance(action, m.Install) else set()
    return installed == side


@pytest.mark.parametrize(
    ("launchers", "ranks", "sides", "going"),
    [
        (5, {0, 1}, ({0, 1}, {2, 3, 4}), [False, True]),
        (5, {0, 1, 2}, ({0, 1}, {2, 3, 4}), [False, True]),
        (5, {0, 1, 2}, ({0, 1, 2}, {3, 4}), [True, False]),
        (4, {0, 1}, ({0, 1}, {2, 3}), [False, False]),
        (4, {0, 1}, ({0}, {1, 2, 3}), [False, True]),
    ],
    ids=["all-ranks-and-most-launchers", "most-ranks-and-most-launchers", "one-has-both", "halves", "one-is-cut-off"],
)
def test_the_side_with_most_launchers_goes_on_wherever_the_ranks_are(
    launchers: int, ranks: set[int], sides: tuple[set[int], ...], going: list[bool]
) -> None:
    found = [goes_on(frozenset(side), launchers=launchers, ranks=frozenset(ranks)) for side in sides]

    assert found == going
    assert sum(found) <= 1
