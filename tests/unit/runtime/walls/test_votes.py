"""Votes on views: what a launcher without a vote, an older proposal or an older generation may not do."""

from dataclasses import replace

import pytest

from holdfast_runtime import membership as m
from holdfast_runtime.membership import Ballot

SIZE = 3
EVERYONE = frozenset(range(SIZE))
OLD, NEW = Ballot(1, 0), Ballot(2, 2)


def decide(committed: m.View, statuses: tuple[m.Status, ...]) -> m.View:
    return m.View(generation=committed.generation + 1, nodes=(0,) * SIZE, resume_step=len(statuses))


def view(step: int, *, generation: int = 1) -> m.View:
    return m.View(generation=generation, nodes=(0,) * SIZE, resume_step=step)


def launcher(me: int, *, incarnation: int = 0) -> m.Node:
    """One whose processes have left, so that it answers at once."""
    node, _ = m.trouble(m.start(me=me, size=SIZE, incarnation=incarnation, up=EVERYONE), "starts")
    return m.ready(node, m.Status(node=me, incarnation=incarnation))[0]


def proposer() -> tuple[m.Node, Ballot]:
    """Launcher 0, which has asked all and heard itself."""
    node, actions = m.timer(launcher(0), m.PROPOSE, decide=decide)
    prepare = next(action.message for action in actions if isinstance(action, m.Send) and action.to == 0)
    assert isinstance(prepare, m.Prepare)
    node, actions = m.message(node, 0, prepare, decide=decide)
    return heard(node, *(action.message for action in actions if isinstance(action, m.Send)))[0], prepare.ballot


def heard(node: m.Node, *messages: m.Message, sender: int = 0) -> tuple[m.Node, list[m.Action]]:
    done: list[m.Action] = []
    for message in messages:
        node, actions = m.message(node, sender, message, decide=decide)
        done += actions
    return node, done


def promise(me: int, ballot: Ballot, *, votes: bool = True, accepted: tuple[Ballot, m.View] | None = None) -> m.Promise:
    return m.Promise(1, ballot, votes, m.Status(node=me, incarnation=0), accepted)


def proposed(actions: list[m.Action]) -> list[m.View]:
    return [a.message.view for a in actions if isinstance(a, m.Send) and isinstance(a.message, m.Accept)]


def gathered(node: m.Node) -> list[m.View]:
    """What is proposed when the time for answers is over."""
    return proposed(m.timer(node, m.GATHER, decide=decide)[1])


def test_a_launcher_that_replaced_another_says_that_it_does_not_vote() -> None:
    first, replaced = launcher(1), launcher(1, incarnation=1)
    prepare = m.Prepare(1, OLD, first.committed)

    answers = [heard(node, prepare, sender=0)[1][-1] for node in (first, replaced)]

    assert [answer.message.voter for answer in answers if isinstance(answer, m.Send)] == [True, False]  # type: ignore[union-attr]


def test_a_launcher_that_replaced_another_accepts_nothing() -> None:
    accept = m.Accept(1, OLD, view(1))

    node, actions = heard(launcher(1, incarnation=1), accept)
    voter, answers = heard(launcher(1), accept)

    assert (node.accepted, actions) == (None, [])
    assert (voter.accepted, answers) == ((OLD, view(1)), [m.Send(0, m.Accepted(1, OLD))])


def test_it_votes_once_a_committed_view_names_it() -> None:
    node, _ = heard(launcher(1, incarnation=1), m.Commit(m.View(generation=1, nodes=(0, 1, 0))))

    assert node.votes


@pytest.mark.parametrize(("votes", "proposals"), [(True, 2), (False, 0)])
def test_promises_without_a_vote_are_no_majority(votes: bool, proposals: int) -> None:
    node, ballot = proposer()
    node, _ = heard(node, promise(1, ballot, votes=votes))

    assert len(gathered(node)) == proposals


def test_half_of_the_launchers_are_no_majority() -> None:
    sizes = {size: m.start(me=0, size=size).majority for size in (1, 2, 3, 4, 5)}

    assert sizes == {1: 1, 2: 2, 3: 2, 4: 3, 5: 3}


def test_one_launcher_that_answers_twice_is_one() -> None:
    node, ballot = proposer()
    node, _ = heard(node, *(promise(0, ballot) for _ in range(3)))

    assert gathered(node) == []


def test_a_view_that_may_have_been_committed_is_proposed_again_and_of_several_the_newest() -> None:
    node, ballot = proposer()
    node, actions = heard(
        node, promise(1, ballot, accepted=(OLD, view(7))), promise(2, ballot, accepted=(NEW, view(8)))
    )

    assert set(proposed(actions)) == {view(8)}


def test_what_a_launcher_without_a_vote_has_accepted_binds_nobody() -> None:
    node, ballot = proposer()
    node, actions = heard(node, promise(1, ballot), promise(2, ballot, votes=False, accepted=(NEW, view(8))))

    assert set(proposed(actions)) == {view(3)}


def test_after_a_promise_an_older_proposal_is_refused_and_not_accepted() -> None:
    node, _ = heard(launcher(1), m.Prepare(1, NEW, launcher(1).committed), sender=2)

    _, answers = heard(node, m.Prepare(1, OLD, node.committed), sender=0)
    after, refused = heard(node, m.Accept(1, OLD, view(1)), sender=0)

    assert answers == refused == [m.Send(0, m.Refuse(1, NEW))]
    assert after.accepted is None


def test_answers_to_another_proposal_and_of_another_generation_are_not_counted() -> None:
    node, ballot = proposer()
    other = Ballot(ballot.round + 1, 1)

    assert gathered(heard(node, promise(1, other), promise(2, other))[0]) == []
    node, _ = heard(node, promise(1, ballot), promise(2, ballot))
    late = [m.Accepted(1, other), m.Accepted(0, ballot), m.Accepted(2, ballot)]
    for sender in (1, 2):
        node, actions = heard(node, *late, sender=sender)
        assert actions == []
    assert node.committed.generation == 0


def test_a_vote_of_an_older_generation_is_not_counted_in_the_next() -> None:
    node, _ = heard(launcher(1), m.Commit(view(1)))
    node, _ = m.trouble(node, "again")
    node, _ = m.ready(node, m.Status(node=1, incarnation=0))

    after, actions = heard(node, m.Accept(1, Ballot(9, 0), view(5)))

    assert after.accepted is None
    assert actions == [m.Send(0, m.Commit(view(1)))]


def test_a_committed_view_is_not_taken_back() -> None:
    node, _ = heard(launcher(1), m.Commit(view(4, generation=2)))

    assert heard(node, m.Commit(view(9, generation=1)), m.Commit(view(9, generation=2))) == (node, [])
    assert replace(node, up=frozenset()).committed == view(4, generation=2)
