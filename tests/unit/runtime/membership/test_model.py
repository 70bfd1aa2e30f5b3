"""Every order of events in small worlds: whatever is lost, late or dead, no generation ever has two committed views."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from holdfast_runtime import membership as m


def decide(committed: m.View, statuses: tuple[m.Status, ...]) -> m.View:
    """A view that shows who was heard, so that two proposers with other answers propose other views."""
    nodes = [-1] * len(committed.nodes)
    for status in statuses:
        nodes[status.node] = status.incarnation
    return m.View(generation=committed.generation + 1, nodes=tuple(nodes), resume_step=len(statuses))


class World(NamedTuple):
    """All launchers, what is on its way between them, and how many faults and proposals may still happen."""

    nodes: tuple[m.Node | None, ...]
    """None for a dead one."""
    flying: frozenset[tuple[int, int, m.Message]]
    views: tuple[m.View, ...]
    """What was committed anywhere."""
    crashes: int
    proposals: int
    replacements: int
    cuts: int
    witness: m.Witness | None = None
    forgets: int = 0
    """How often the witness may be started again, each time without its memory and as another one."""
    pairs: int = 0
    """How often two dead launchers may be replaced at the same moment, by two that meet each other first."""
    unmet: frozenset[int] = frozenset()
    """Those of such a pair that have met nobody else, and so know of no predecessor."""
    named_alike: bool = False
    """Whether views call one that knows of no predecessor what they call the first launcher of its node."""


def after(world: World, me: int, node: m.Node, actions: list[m.Action]) -> World:
    """The world once a launcher's actions are carried out; what it tells itself it hears at once."""
    flying, views = set(world.flying), list(world.views)
    queue = list(actions)
    while queue:
        action = queue.pop(0)
        if isinstance(action, m.Send) and action.to == me:
            node, more = m.message(node, me, action.message, decide=decide)
            queue += more
        elif isinstance(action, m.Send):
            flying.add((me, action.to, action.message))
        elif isinstance(action, m.Leave):
            node, more = m.ready(node, m.Status(node=me, incarnation=node.incarnation))
            queue += more
        elif isinstance(action, m.Install):
            views.append(action.view)
    nodes = (*world.nodes[:me], node, *world.nodes[me + 1 :])
    useful = frozenset(
        envelope for envelope in flying if not (envelope[1] < len(nodes) and is_stale(nodes[envelope[1]], envelope[2]))
    )
    return world._replace(nodes=nodes, flying=useful, views=tuple(dict.fromkeys(views)))


def is_stale(node: m.Node | None, message: m.Message) -> bool:
    """Whether delivering the message could never do anything, so that worlds with and without it are the same."""
    if node is None:
        return True
    if isinstance(message, m.Commit):
        return message.view.generation <= node.committed.generation
    if isinstance(message, m.Prepare | m.Accept):
        return False
    gone = node.ballot is None if isinstance(message, m.Refuse) else message.ballot != node.ballot
    return message.generation < node.generation or (message.generation == node.generation and gone)


def successors(world: World) -> Iterator[World]:
    """Everything that can happen next. A message that is never chosen is a message that is lost."""
    for envelope in world.flying:
        sender, receiver, message = envelope
        rest = world._replace(flying=world.flying - {envelope})
        if receiver == len(rest.nodes):
            yield heard_by_witness(rest, sender, message)
            continue
        node = rest.nodes[receiver]
        if node is not None:
            yield after(rest, receiver, *m.message(node, sender, message, decide=decide))
    for me, node in enumerate(world.nodes):
        if node is not None and node.requested and world.proposals:
            rest = world._replace(proposals=world.proposals - 1)
            yield after(rest, me, *m.timer(node, m.PROPOSE, decide=decide))
        if node is not None and node.ballot is not None and node.proposal is None:
            yield after(world, me, *m.timer(node, m.GATHER, decide=decide))
        if node is not None and node.gone and not node.requested:
            yield after(world, me, *m.timer(node, m.MEET, decide=decide))
        if node is not None and world.crashes:
            yield crash(world, me)
        if node is None and world.replacements:
            yield replacement(world, me)
        if node is not None and world.cuts:
            yield cut(world, me)
        if me in world.unmet:
            yield told(world, me)
    if world.pairs and sum(node is None for node in world.nodes) == 2:
        yield pair(world)
    if world.witness is not None and world.forgets:
        yield forgetting(world)


def heard_by_witness(world: World, sender: int, message: m.Message) -> World:
    assert world.witness is not None
    witness, reply = m.answer(world.witness, message)
    world = world._replace(witness=witness)
    if reply is None or is_stale(world.nodes[sender], reply):
        return world
    return world._replace(flying=world.flying | {(witness.seat, sender, reply)})


def forgetting(world: World) -> World:
    """The witness is started again: what was on its way to it is lost, and launchers meet another one."""
    assert world.witness is not None
    newcomer = m.Witness(identity=world.witness.identity + 1, seat=world.witness.seat)
    flying = frozenset(envelope for envelope in world.flying if envelope[1] != newcomer.seat)
    return met(world._replace(witness=newcomer, flying=flying, forgets=world.forgets - 1))


def met(world: World) -> World:
    """Each launcher has a link to the witness."""
    assert world.witness is not None
    for me, node in enumerate(world.nodes):
        if node is not None:
            world = after(world, me, *m.witness_found(node, world.witness.identity))
    return world


def crash(world: World, me: int) -> World:
    """A launcher dies, and the others notice."""
    flying = frozenset(envelope for envelope in world.flying if envelope[1] != me)
    world = world._replace(
        nodes=(*world.nodes[:me], None, *world.nodes[me + 1 :]), flying=flying, crashes=world.crashes - 1
    )
    for other, node in enumerate(world.nodes):
        if node is not None:
            world = after(world, other, *m.lost(node, me))
    return world


def cut(world: World, me: int) -> World:
    """A launcher and the others lose sight of each other, and all of them go on."""
    flying = frozenset(envelope for envelope in world.flying if me not in envelope[:2])
    world = world._replace(flying=flying, cuts=world.cuts - 1)
    for other, node in enumerate(world.nodes):
        itself = world.nodes[me]
        if node is not None and itself is not None and other != me:
            world = after(world, other, *m.lost(node, me))
            world = after(world, me, *m.lost(itself, other))
    return world


def replacement(world: World, me: int) -> World:
    """A launcher without memory takes the place of a dead one."""
    up = frozenset(other for other, node in enumerate(world.nodes) if node is not None)
    newcomer = m.start(me=me, size=len(world.nodes), incarnation=1, up=up)
    world = world._replace(
        nodes=(*world.nodes[:me], newcomer, *world.nodes[me + 1 :]),
        replacements=world.replacements - 1,
    )
    if world.witness is not None:
        newcomer, _ = m.witness_found(newcomer, world.witness.identity)
    world = after(world, me, *m.trouble(newcomer, "starts"))
    for other in up:
        node = world.nodes[other]
        if node is not None:
            world = after(world, other, *m.found(node, me, newcomer.incarnation))
    return world


def pair(world: World) -> World:
    """Two launchers are replaced at the same moment. Neither asks for a view before it has met more than the other."""
    dead = frozenset(me for me, node in enumerate(world.nodes) if node is None)
    nodes = tuple(
        node or m.start(me=me, size=len(world.nodes), identity=0 if world.named_alike else 10 + me, up=dead)
        for me, node in enumerate(world.nodes)
    )
    return world._replace(nodes=nodes, unmet=dead, pairs=world.pairs - 1)


def has_a_place(node: m.Node) -> bool:
    """Whether a launcher takes itself for one of the newest view that it knows: then it cannot begin anew."""
    return node.committed.generation > 0 and node.votes


def told(world: World, me: int) -> World:
    """One of a pair meets the survivors, learns that it replaced another, and begins anew under another identity."""
    before, others = world.nodes[me], frozenset(range(len(world.nodes))) - {me}
    assert before is not None
    assert not has_a_place(before), "a launcher that has just been started ends without need"
    up = others if len(world.unmet) == 1 else others - world.unmet
    other = next(iter(world.unmet - {me}), me)
    flying = frozenset(envelope for envelope in world.flying if me not in envelope[:2])
    world = world._replace(flying=flying, unmet=world.unmet - {me})
    anew = m.start(me=me, size=len(world.nodes), incarnation=1, identity=20 + me, up=up | {other})
    world = world._replace(nodes=(*world.nodes[:me], anew, *world.nodes[me + 1 :]))
    for peer in sorted(others):
        node = world.nodes[peer]
        assert node is not None
        world = after(world, peer, *m.found(m.lost(node, me)[0] if peer == other else node, me, anew.incarnation))
        if node.committed.generation:
            known, actions = m.message(world.nodes[me] or anew, peer, m.Commit(node.committed), decide=decide)
            world = after(world, me, known, actions)
    return after(world, me, *m.trouble(world.nodes[me] or anew, "is back"))


def two_at_once(*, named_alike: bool = False, dead: bool = False) -> World:
    """
    A job of three at generation 1, where the first asks for the next view, and which may lose two at once.

    Args:
        dead: The first two are lost right after they have committed that view, which the third does not know.
    """
    first = m.View(generation=1, nodes=(0, 0, 0))
    everyone = frozenset(range(3))
    world = beginning(size=3, crashes=2)._replace(
        nodes=tuple(replace(m.start(me=me, size=3, up=everyone), committed=first) for me in range(3)),
        flying=frozenset(),
        views=(first,),
        pairs=1,
        named_alike=named_alike,
    )
    node = world.nodes[0]
    assert node is not None
    world = after(world, 0, *m.trouble(node, "wanted"))
    if dead:
        world = after(world._replace(proposals=1), 0, *m.timer(world.nodes[0] or node, m.PROPOSE, decide=decide))
        world = between(world, 0, 1)
        assert world.views[-1].generation == 2
        world = crash(crash(world._replace(flying=frozenset()), 0), 1)
    return world


def between(world: World, one: int, other: int) -> World:
    """What two launchers say to each other is heard, and a proposal is concluded once there is nothing left to hear."""
    while said := [envelope for envelope in world.flying if {*envelope[:2]} == {one, other}]:
        for sender, receiver, message in said:
            node, world = world.nodes[receiver], world._replace(flying=world.flying - {(sender, receiver, message)})
            assert node is not None
            world = after(world, receiver, *m.message(node, sender, message, decide=decide))
        node = world.nodes[one]
        if node is not None and node.ballot is not None and node.proposal is None:
            world = after(world, one, *m.timer(node, m.GATHER, decide=decide))
    return world


def beginning(*, size: int, crashes: int = 0, proposals: int = 2, replacements: int = 0, cuts: int = 0) -> World:
    everyone = frozenset(range(size))
    world = World(
        nodes=tuple(m.start(me=me, size=size, up=everyone) for me in range(size)),
        flying=frozenset(),
        views=(),
        crashes=crashes,
        proposals=proposals,
        replacements=replacements,
        cuts=cuts,
    )
    for me, node in enumerate(world.nodes):
        assert node is not None
        world = after(world, me, *m.trouble(node, "starts"))
    return world


def two_and_a_witness(
    *, proposals: int = 2, crashes: int = 0, replacements: int = 0, cuts: int = 0, forgets: int = 0
) -> World:
    """A job of two launchers whose first view names the witness, and which wants the next."""
    witness = m.Witness(identity=1, seat=2)
    first = m.View(generation=1, nodes=(0, 0), witness=1)
    world = World(
        nodes=tuple(m.start(me=me, size=2, up=frozenset({0, 1})) for me in range(2)),
        flying=frozenset(),
        views=(first,),
        crashes=crashes,
        proposals=proposals,
        replacements=replacements,
        cuts=cuts,
        witness=m.answer(witness, m.Commit(first))[0],
        forgets=forgets,
    )
    for me in range(2):
        node = world.nodes[me]
        assert node is not None
        node, _ = m.message(node, me, m.Commit(first), decide=decide)
        world = after(world, me, *m.witness_found(node, 1))
    for me in range(2):
        node = world.nodes[me]
        assert node is not None
        world = after(world, me, *m.trouble(node, "wanted"))
    return world


def explore(first: World) -> tuple[int, int]:
    """Visit every world; the number of worlds, and the highest generation that was committed in any."""
    seen, frontier, highest = {first}, [first], 0
    while frontier:
        world = frontier.pop()
        generations = [view.generation for view in world.views]
        assert len(generations) == len(set(generations)), f"two views of one generation: {world.views}"
        highest = max([highest, *generations])
        for following in successors(world):
            if following not in seen:
                seen.add(following)
                frontier.append(following)
    return len(seen), highest


@pytest.mark.parametrize(
    ("first", "at_least", "generation"),
    [
        pytest.param(beginning(size=1), 2, 1, id="alone"),
        pytest.param(beginning(size=2, crashes=1, proposals=3), 1000, 1, id="two, one dies"),
        pytest.param(beginning(size=3), 10_000, 1, id="three"),
        pytest.param(beginning(size=3, crashes=1), 50_000, 2, id="three, one dies", marks=pytest.mark.e2e),
        pytest.param(beginning(size=3, cuts=1), 10_000, 2, id="three, one is cut off", marks=pytest.mark.e2e),
        pytest.param(
            beginning(size=3, crashes=1, replacements=1), 300_000, 2, id="three, one is replaced", marks=pytest.mark.e2e
        ),
        pytest.param(two_at_once(), 50_000, 3, id="three, two replaced at once", marks=pytest.mark.e2e),
        pytest.param(two_at_once(dead=True), 90, 2, id="three, two replaced at once after a vote"),
        pytest.param(
            two_and_a_witness(crashes=1, replacements=1),
            50_000,
            3,
            id="two and a witness, one is replaced",
            marks=pytest.mark.e2e,
        ),
        pytest.param(
            two_and_a_witness(forgets=1, cuts=1),
            30_000,
            3,
            id="two cut apart and a witness that forgets",
            marks=pytest.mark.e2e,
        ),
    ],
)
def test_no_order_of_events_commits_two_views_of_one_generation(first: World, at_least: int, generation: int) -> None:
    worlds, highest = explore(first)

    assert worlds >= at_least
    assert highest == generation


@pytest.mark.parametrize(
    ("safeguard", "broken", "first"),
    [
        pytest.param(
            "votes",
            property(lambda node: True),
            beginning(size=3, crashes=1, replacements=1),
            marks=pytest.mark.e2e,
        ),
        ("majority", property(lambda node: (len(node.up) + 1) // 2 + 1), beginning(size=3, cuts=1)),
    ],
)
def test_without_a_safeguard_two_views_of_one_generation_are_found(
    safeguard: str, broken: property, first: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m.Node, safeguard, broken)

    with pytest.raises(AssertionError, match="two views of one generation"):
        explore(first)


@pytest.mark.parametrize(
    ("begins_anew", "found"),
    [(False, "ends without need"), (True, "two views of one generation")],
    ids=["ends", "votes"],
)
def test_a_launcher_that_is_called_as_its_predecessor_ends_without_need_or_votes_in_its_place(
    begins_anew: bool, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if begins_anew:
        monkeypatch.setitem(globals(), "has_a_place", lambda node: False)

    with pytest.raises(AssertionError, match=found):
        explore(two_at_once(named_alike=True, dead=True))


@pytest.mark.parametrize(
    ("broken", "first"),
    [
        pytest.param(True, two_and_a_witness(forgets=1, cuts=1), id="one that forgot its votes may vote"),
        pytest.param("refuses nothing", two_and_a_witness(cuts=1), id="it keeps no promise"),
    ],
)
def test_a_witness_without_a_safeguard_lets_two_views_of_one_generation_happen(
    broken: object, first: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken is True:
        monkeypatch.setattr(m.Witness, "votes", property(lambda witness: True))
    else:
        answer = m.answer
        monkeypatch.setattr(
            m,
            "answer",
            lambda witness, message: answer(
                witness if isinstance(message, m.Commit) else replace(witness, promised=None, accepted=None), message
            ),
        )

    with pytest.raises(AssertionError, match="two views of one generation"):
        explore(first)


def test_a_launcher_that_is_left_goes_on_with_the_witness() -> None:
    world = crash(two_and_a_witness(crashes=1), 1)

    assert max(view.generation for view in world.views) == 1
    _, highest = explore(world._replace(flying=frozenset(), proposals=1))
    assert highest == 2


def test_a_launcher_that_is_left_does_not_go_on_without_the_witness() -> None:
    world = crash(two_and_a_witness(crashes=1), 1)

    _, highest = explore(world._replace(flying=frozenset(), witness=m.Witness(identity=9, seat=2)))

    assert highest == 1


def test_a_witness_has_no_seat_where_the_number_of_launchers_is_odd() -> None:
    node = m.start(me=0, size=3)

    assert m.witness_found(node, 5) == (node, [])


def test_a_launcher_without_a_majority_stops_and_says_how_many_are_in_reach() -> None:
    world = cut(beginning(size=3, cuts=1), 2)
    node = world.nodes[2]
    assert node is not None

    _, actions = m.timer(node, m.GIVE_UP, decide=decide)

    assert actions == [m.Stop("starts; 1 of 3 launchers that may vote are in reach and 2 are needed")]


@pytest.mark.parametrize("size", [1, 3])
def test_a_launcher_whose_processes_neither_leave_nor_end_does_not_blame_the_votes(size: int) -> None:
    node, _ = m.trouble(m.start(me=0, size=size, up=frozenset(range(size))), "rank 0 hangs")

    _, actions = m.timer(node, m.GIVE_UP, decide=decide)

    assert actions == [m.Stop("rank 0 hangs; processes of this node are neither ready nor ended")]


@pytest.mark.parametrize(("witness", "seen"), [(-1, "no"), (1, "no")], ids=["without one", "with one that forgot"])
def test_one_of_two_launchers_says_that_a_witness_is_missing(witness: int, seen: str) -> None:
    node = m.start(me=0, size=2, up=frozenset({1}))
    node, _ = m.trouble(node, "starts")
    node, _ = m.ready(node, m.Status(node=0, incarnation=0))
    node, _ = m.lost(m.witness_found(node, witness)[0] if witness >= 0 else node, 1)

    _, actions = m.timer(node, m.GIVE_UP, decide=decide)

    few = f"1 of 2 launchers that may vote and {seen} witness are in reach, and 2 votes are needed"
    assert actions == [m.Stop(f"starts; {few}")]
