"""Launchers that are replaced while a view is agreed on: nobody waits for a deadline because of a newcomer."""

from dataclasses import replace

import pytest

from holdfast_runtime import membership as m

SIZE = 5
FIRST = m.View(generation=1, nodes=tuple(range(10, 10 + SIZE)))
NEWCOMER = 99


def decide(committed: m.View, statuses: tuple[m.Status, ...]) -> m.View:
    nodes = [-1] * SIZE
    for status in statuses:
        nodes[status.node] = status.incarnation
    return m.View(generation=committed.generation + 1, nodes=tuple(nodes))


def launcher(me: int) -> m.Node:
    """One of a job at generation 1 that has met all the others, and whose processes leave at once."""
    node = m.start(me=me, size=SIZE, identity=10 + me)
    for peer in sorted({*range(SIZE)} - {me}):
        node, _ = m.found(node, peer, 10 + peer)
    node, _ = m.message(node, me, m.Commit(FIRST), decide=decide)
    return m.ready(node, m.Status(node=me, incarnation=10 + me))[0]


def proposer(*, gone: int) -> tuple[m.Node, m.Prepare]:
    """Launcher 0, which has seen the loss of another one, has asked all that are left and heard itself."""
    node, _ = m.lost(launcher(0), gone)
    node, actions = m.timer(node, m.PROPOSE, decide=decide)
    prepare = next(message for to, message in sent(actions) if to == 0)
    assert isinstance(prepare, m.Prepare)
    return promised(node, prepare, 0)[0], prepare


def promised(node: m.Node, prepare: m.Prepare, sender: int, *, name: int = -1) -> tuple[m.Node, list[m.Action]]:
    status = m.Status(node=sender, incarnation=10 + sender if name < 0 else name)
    promise = m.Promise(prepare.generation, prepare.ballot, name < 0, status, None)
    return m.message(node, sender, promise, decide=decide)


def sent(actions: list[m.Action]) -> list[tuple[int, m.Message]]:
    return [(action.to, action.message) for action in actions if isinstance(action, m.Send)]


def views(actions: list[m.Action]) -> set[m.View]:
    return {message.view for _, message in sent(actions) if isinstance(message, m.Accept)}


def timers(actions: list[m.Action]) -> dict[str, int]:
    return {action.name: action.turn for action in actions if isinstance(action, m.SetTimer)}


def test_a_newcomer_that_is_found_while_others_still_leave_is_asked_and_the_view_waits_for_no_deadline() -> None:
    node, prepare = proposer(gone=4)
    node, _ = promised(node, prepare, 1)
    node, _ = promised(node, prepare, 2)

    node, actions = m.found(node, 4, NEWCOMER)
    assert sent(actions) == [(4, prepare)]

    node, actions = promised(node, prepare, 3)
    assert views(actions) == set(), "the newcomer is still to answer"
    node, actions = promised(node, prepare, 4, name=NEWCOMER)
    assert views(actions) == {m.View(generation=2, nodes=(10, 11, 12, 13, NEWCOMER))}


def test_a_newcomer_that_is_found_once_the_view_is_chosen_is_not_asked() -> None:
    node, prepare = proposer(gone=4)
    for peer in (1, 2, 3):
        node, actions = promised(node, prepare, peer)
    assert views(actions)

    assert sent(m.found(node, 4, NEWCOMER)[1]) == []


def test_another_loss_does_not_shut_out_launchers_that_have_not_answered_yet() -> None:
    node, prepare = proposer(gone=4)
    node, _ = promised(node, prepare, 1)
    node, _ = promised(node, prepare, 2)

    waits, actions = m.lost(replace(node, up=node.up | {4}), 4)
    assert m.GATHER not in timers(actions), "launcher 3 is in reach and is still to answer"
    assert views(promised(waits, prepare, 3)[1]) == {m.View(generation=2, nodes=(10, 11, 12, 13, -1))}

    _, actions = m.lost(node, 3)
    assert timers(actions)[m.GATHER] == 0, "nobody else is left that could answer"


@pytest.mark.parametrize(("name", "turn"), [(10, 1), (NEWCOMER, 0)], ids=["of the view", "a newcomer"])
def test_only_launchers_of_the_view_are_waited_for_to_propose(name: int, turn: int) -> None:
    """A newcomer may never have met the one that is lost, and then asks for nothing."""
    node, _ = m.found(launcher(1), 0, name)

    assert timers(m.lost(node, 3)[1])[m.PROPOSE] == turn


def test_a_newcomer_that_is_found_does_not_put_off_the_proposal_of_the_one_whose_turn_it_is() -> None:
    node, actions = m.lost(launcher(0), 3)
    assert timers(actions)[m.PROPOSE] == 0

    assert timers(m.found(node, 3, NEWCOMER)[1])[m.PROPOSE] == 0


@pytest.mark.parametrize(("name", "reason"), [(13, ""), (NEWCOMER, "node 3 is lost")], ids=["there", "replaced"])
def test_a_view_that_names_a_launcher_whose_place_a_newcomer_has_is_followed_by_another(name: int, reason: str) -> None:
    """One that was accepted before is proposed again as it is, also where one that it names was replaced meanwhile."""
    node, _ = m.found(launcher(1), 3, name)

    node, _ = m.message(node, 0, m.Commit(replace(FIRST, generation=2)), decide=decide)

    assert node.requested == reason


def test_a_newcomer_of_the_view_that_others_met_first_is_given_time_to_come_into_reach() -> None:
    view = replace(FIRST, generation=2, nodes=(10, 11, 12, NEWCOMER, 14))
    node, _ = m.lost(launcher(1), 3)

    node, actions = m.message(node, 0, m.Commit(view), decide=decide)

    assert (node.requested, timers(actions)) == ("", {m.MEET: 0})
    assert m.timer(node, m.MEET, decide=decide)[0].requested == "node 3 is lost"
    met, _ = m.found(node, 3, NEWCOMER)
    assert m.timer(met, m.MEET, decide=decide) == (met, [])


def test_a_launcher_of_the_view_that_was_lost_before_it_was_committed_is_lost_at_once() -> None:
    node, _ = m.lost(launcher(1), 3)

    node, _ = m.message(node, 0, m.Commit(replace(FIRST, generation=2)), decide=decide)

    assert node.requested == "node 3 is lost"


def test_a_newcomer_gives_those_time_that_it_has_not_met_yet() -> None:
    node, _ = m.found(m.start(me=3, size=SIZE, incarnation=1, identity=NEWCOMER), 0, 10)

    node, actions = m.message(
        node, 0, m.Commit(replace(FIRST, generation=2, nodes=(10, 11, 12, NEWCOMER, 14))), decide=decide
    )

    assert (node.requested, timers(actions)) == ("", {m.MEET: 0})
