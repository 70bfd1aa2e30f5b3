"""What launchers of a large job say reaches those that it is for, once, whichever of them is lost on the way."""

import math

import pytest
from overlay_world import World, orders

from holdfast_runtime.overlay import NEIGHBOURS, Effect, Letter, Member, Overlay, Packet, Ring, Write

SIZES = (10, 16, 64, 256, 4096)


@pytest.mark.parametrize("size", SIZES)
def test_connections_grow_with_the_logarithm_and_lead_everywhere_in_a_logarithm_of_hops(size: int) -> None:
    ring = Ring(range(size))
    few = range(0, size, max(1, size // 16))

    assert all(len(ring.desired(node)) <= 2 * NEIGHBOURS + math.log2(size) for node in few)
    reached = {0}
    hops = 0
    while len(reached) < size:
        reached |= {other for node in reached for other in ring.desired(node)}
        hops += 1
    assert hops <= math.log2(size)


def test_neighbours_stay_the_same_where_others_come_and_go() -> None:
    ring, before = Ring(range(256)), Ring(range(256))
    ring.remove(7)

    changed = [node for node in ring.nodes() if ring.desired(node) - before.desired(node)]

    assert 0 < len(changed) <= 4 * NEIGHBOURS + 2 * math.log2(256)


@pytest.mark.parametrize("order", orders())
@pytest.mark.parametrize(("size", "each_side"), [(5, 1), (9, 1), (16, 2), (24, 4)])
def test_what_one_says_to_all_comes_to_each_once(size: int, each_side: int, order: str) -> None:
    world = World(size, each_side=each_side, pick=orders()[order]())

    world.say(3, "hello")
    world.say(1, "welcome", skip=(2,))
    world.settle()

    for node, read in world.read.items():
        said = [(3, "hello")] * (node != 3) + [(1, "welcome")] * (node not in (1, 2))
        assert sorted(read) == sorted(said)


def test_a_message_to_all_crosses_as_many_connections_as_there_are_launchers() -> None:
    world = World(24, each_side=4)

    world.say(3, "hello")
    world.settle()

    assert world.delivered == 23


@pytest.mark.parametrize("order", orders())
def test_what_one_says_to_another_is_passed_on_to_it_alone(order: str) -> None:
    world = World(9, pick=orders()[order]())

    for to in range(1, 9):
        world.say(0, f"to {to}", to=to)
    world.settle()

    assert {node: read for node, read in world.read.items() if node} == {to: [(0, f"to {to}")] for to in range(1, 9)}


def test_what_is_held_for_a_connection_that_is_ended_goes_once_there_is_one_again() -> None:
    first, second, third = (Member(node, f"{node:02x}", 0, "host", 1 + node) for node in Ring(range(9)).nodes()[:3])
    overlay = Overlay(second.node, {one.node: one for one in (first, second, third)}, heartbeat_s=1.0, hold_s=0.005)
    for neighbour in (first, third):
        overlay.link(neighbour, 0.0)
    overlay.effects(0.1)
    letter = Letter(first.node, first.uid, 1, "hello", to=third.node)

    overlay.hear(first.node, Packet(letters=(letter,)), 1.0)
    held = overlay.effects(1.001)
    overlay.unlink(third.node, 1.002, parted=True, resend=False)
    others_may_know = overlay.effects(1.1)
    overlay.hear(first.node, Packet(letters=(letter,)), 1.2)  # they do not
    again = overlay.effects(1.3)
    overlay.link(third, 1.4)

    assert (held, again) == ([], [])
    assert with_letters(others_may_know) == [(first.node, (letter,))]
    assert with_letters(overlay.effects(1.5)) == [(third.node, (letter,))]


def with_letters(effects: list[Effect]) -> list[tuple[int, tuple[Letter, ...]]]:
    """Neighbours that letters go to."""
    return [(one.node, one.packet.letters) for one in effects if isinstance(one, Write) and one.packet.letters]


def points(size: int, each_side: int) -> int:
    """In how many steps all is said."""
    world = World(size, each_side=each_side)
    world.say(3, "hello")
    world.say(3, "one", to=8)
    world.settle()
    return world.delivered


@pytest.mark.parametrize("order", orders())
@pytest.mark.parametrize(("size", "each_side"), [(9, 1), (12, 2)])
def test_whoever_is_lost_at_any_point_all_others_hear_it_once(size: int, each_side: int, order: str) -> None:
    lost_on_the_way = 0
    for victim in {*range(size)} - {3}:
        for point in range(points(size, each_side) + 1):
            world = World(size, each_side=each_side, pick=orders()[order]())
            world.say(3, "hello")
            world.say(3, "one", to=8)
            for _ in range(point):
                world.step()
            heard = [node for node, read in world.read.items() if (3, "hello") in read]
            lost_on_the_way += len(heard) < size - 1
            world.kill(victim)
            world.settle()

            for node in world.overlays.keys() - {3}:
                assert sorted(world.read[node]) == [(3, "hello"), *[(3, "one")] * (node == 8)]
            assert all(world.down[node] == [victim] for node in world.overlays)
    assert lost_on_the_way > size


@pytest.mark.parametrize("order", orders())
def test_two_neighbours_that_are_lost_at_once_are_known_to_be_lost_by_all(order: str) -> None:
    world = World(12, each_side=2, pick=orders()[order]())
    first, second = world.ring.nodes()[4:6]

    world.kill(first)
    world.kill(second)
    world.settle()

    assert all(sorted(world.down[node]) == sorted((first, second)) for node in world.overlays)


def test_one_accuser_is_not_believed_where_the_accused_denies_it() -> None:
    world = World(12, each_side=2)

    world.overlays[3].suspect(7, world.now_s)
    world.carry_out(3)
    world.settle()

    assert all(down == [] for down in world.down.values())
    assert {overlay.roster.members[7].turn for overlay in world.overlays.values()} == {1}


def test_one_that_was_cut_off_does_not_take_those_that_ended_its_connections_for_lost() -> None:
    """All have taken it for lost; when it comes to itself, it finds that all of its connections are closed."""
    world = World(12, each_side=2)
    frozen = world.overlays[7]
    neighbours = sorted(frozen.linked)
    world.kill(7)
    world.settle()
    world.overlays[7] = frozen
    world.ring.add(7)
    for node in neighbours:
        frozen.unlink(node, world.now_s)
    world.carry_out(7)
    world.connect()
    world.settle()

    assert all(world.down[node] == [7] for node in world.overlays.keys() - {7})
    assert world.down[7] == []
    assert all(overlay.roster.is_here(7) for overlay in world.overlays.values())


def test_a_launcher_in_the_place_of_another_is_another() -> None:
    world = World(9)
    newcomer = Member(5, "another", 1, "host", 77)

    world.overlays[4].hear(-1, Packet(members=(newcomer,)), world.now_s)
    world.carry_out(4)
    world.settle()

    assert all(overlay.roster.members[5].uid == "another" for node, overlay in world.overlays.items() if node != 5)
