"""
The protocol where all is passed on by others: whoever is lost at any point, the others agree, and never on two views.

What a lost launcher was to pass on goes another way without the protocol's help; only the loss of who proposed needs
another proposal.
"""

import pytest
from overlay_world import World, orders

from holdfast_runtime import membership as m

SIZE = 5


def begun(order: str, *, size: int = SIZE) -> World:
    """A job whose first view is asked for by the first launcher. Each is connected to two others."""
    world = World(size, pick=orders()[order]())
    for node in world.nodes:
        world.act(node, *m.trouble(world.nodes[node], "begins"))
    world.propose(0)
    return world


def holds(world: World) -> int:
    """At most one view of a generation was committed anywhere; the newest generation that all that are left have."""
    generations = [view.generation for view in world.views]
    assert len(generations) == len(set(generations)), f"two views of one generation: {world.views}"
    return min(world.nodes[node].committed.generation for node in world.overlays)


def go_on(world: World, *, proposer: int) -> None:
    """Propose as long as a view is wanted: one that was accepted before is first proposed again."""
    for _ in range(2):
        if any(world.nodes[node].requested for node in world.overlays):
            world.propose(proposer)
            world.settle()


def without(gone: set[int]) -> tuple[int, ...]:
    return tuple(-1 if node in gone else 0 for node in range(SIZE))


@pytest.mark.parametrize("order", orders())
@pytest.mark.parametrize("size", [3, 5, 9])
def test_launchers_agree_over_others(order: str, size: int) -> None:
    world = begun(order, size=size)
    world.settle()

    assert holds(world) == 1
    assert {view.nodes for view in world.views} == {(0,) * size}


@pytest.mark.parametrize("order", orders())
@pytest.mark.parametrize("victim", range(1, SIZE))
def test_whoever_passes_on_is_lost_at_any_point_and_the_proposal_goes_on_without_another(
    order: str, victim: int
) -> None:
    calm = begun(order)
    calm.settle()
    for point in range(calm.delivered + 1):
        world = begun(order)
        for _ in range(point):
            world.step()
        world.kill(victim)
        world.settle()
        # Where the view was accepted before, it names the lost one, and another is to follow.
        named = any(view.nodes[victim] == 0 for view in world.views)
        if named:
            go_on(world, proposer=0)

        assert holds(world) == 1 + named
        assert {world.nodes[node].committed.nodes for node in world.overlays} == {without({victim})}


@pytest.mark.parametrize("order", orders())
def test_who_proposes_is_lost_at_any_point_and_the_next_one_agrees_with_the_others(order: str) -> None:
    calm = begun(order)
    calm.settle()
    for point in range(calm.delivered + 1):
        world = begun(order)
        for _ in range(point):
            world.step()
        world.kill(0)
        world.settle()
        go_on(world, proposer=1)

        assert holds(world) >= 1
        assert {world.nodes[node].committed.nodes for node in world.overlays} == {without({0})}


@pytest.mark.parametrize("order", orders())
@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 3), (3, 4), (1, 4)])
def test_two_that_pass_on_are_lost_at_any_point(order: str, one: int, other: int) -> None:
    calm = begun(order)
    calm.settle()
    for point in range(0, calm.delivered + 1, 3):
        world = begun(order)
        for _ in range(point):
            world.step()
        world.kill(one)
        world.step()
        world.kill(other)
        world.settle()
        go_on(world, proposer=0)

        assert holds(world) >= 1
        assert {world.nodes[node].committed.nodes for node in world.overlays} == {without({one, other})}
