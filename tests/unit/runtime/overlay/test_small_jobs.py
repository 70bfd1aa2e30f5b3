"""Jobs of 2 to 9 launchers, in which each is connected to all others: losses, and a connection that is cut."""

import itertools

import pytest
from overlay_world import World

from holdfast_runtime.overlay import Down, Packet, Suspicion

SIZES = range(2, 10)


@pytest.mark.parametrize(("size", "lost"), [(size, lost) for size in SIZES for lost in range(1, size)])
def test_losses_are_known_at_once_however_few_are_left(size: int, lost: int) -> None:
    world = World(size, each_side=4)

    for victim in range(lost):
        world.kill(victim)
    while world.step():
        pass

    assert world.now_s == 0.0
    assert all(sorted(world.down[node]) == [*range(lost)] for node in world.overlays)


def cut(world: World, one: int, other: int) -> None:
    """Break the connection of two launchers that stay connected to all others."""
    for node, peer in ((one, other), (other, one)):
        del world.flying[node, peer]
    for node, peer in ((one, other), (other, one)):
        world.overlays[node].unlink(peer, world.now_s)
        world.carry_out(node)
    while world.step():
        pass


@pytest.mark.parametrize("size", [size for size in SIZES if size > 2])
def test_a_cut_connection_is_no_death_and_others_pass_on_what_both_send(size: int) -> None:
    for one, other in itertools.combinations(range(size), 2):
        world = World(size, each_side=4)
        cut(world, one, other)

        world.say(one, "to one", to=other)
        world.say(other, "to all")
        while world.step():
            pass

        assert all(world.down[node] == [] for node in world.overlays)
        assert (one, "to one") in world.read[other]
        assert [node for node in world.overlays if (other, "to all") not in world.read[node]] == [other]


def die(world: World, victim: int) -> None:
    """End a launcher with what it had not passed on; connections that are cut stay cut."""
    neighbours = world.overlays.pop(victim).linked
    world.flying = {ends: packets for ends, packets in world.flying.items() if victim not in ends}
    for node in sorted(neighbours & world.overlays.keys()):
        world.overlays[node].unlink(victim, world.now_s)
        world.carry_out(node)


@pytest.mark.parametrize("size", [size for size in SIZES if size > 3])
def test_a_letter_whose_carrier_dies_takes_another_way_round_a_cut_connection(size: int) -> None:
    for one, other in itertools.permutations(range(size), 2):
        world = World(size, each_side=4)
        cut(world, one, other)

        world.say(one, "to one", to=other)
        (carrier,) = [to for (node, to), packets in world.flying.items() if packets and node == one]
        die(world, carrier)
        while world.step():
            pass

        assert (one, "to one") in world.read[other]


@pytest.mark.parametrize(("size", "why"), [(2, "node 0"), (4, "nodes 0, 2")])
def test_a_loss_names_its_reporters(size: int, why: str) -> None:
    overlay = World(size, each_side=4).overlays[0]
    overlay.suspect(1, 0.0)
    overlay.hear(2, Packet((), (Suspicion(1, "01", 0, 2),) * (size > 2), ()), 0.0)
    assert Down(1, f"reported as lost by {why}") in overlay.effects(0.0)
