"""Who has how many nodes where some jobs are elastic."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_common import Elastic, Waiting, elastic_nodes, shares
from holdfast_runtime import membership as m

FIVE = Elastic("night", nodes=5, sizes=(2, 3, 4, 5))


@pytest.mark.parametrize(
    ("free", "needs", "has"),
    [
        (1, 0, 5),
        (1, 1, 5),
        (1, 2, 4),
        (1, 3, 3),
        (1, 4, 2),
        (1, 5, 5),  # not enough with all that it may give, so nothing is taken
        (4, 3, 5),
    ],
)
def test_as_many_nodes_are_taken_back_as_the_queue_needs(free: int, needs: int, has: int) -> None:
    waiting = [Waiting("urgent", nodes=needs, priority=1)] if needs else []
    assert shares(free=free, waiting=waiting, elastic=[FIVE]) == {"night": has}


def test_nothing_is_taken_for_a_job_of_the_same_or_a_lower_priority() -> None:
    for priority in (0, -1):
        assert shares(free=1, waiting=[Waiting("other", 3, priority)], elastic=[FIVE]) == {"night": 5}


def test_what_idles_is_lent_to_the_first_by_priority_as_far_as_its_sizes_go() -> None:
    first, second = Elastic("first", 2, (2, 4), priority=2), Elastic("second", 2, (2, 3, 4), priority=1)
    assert shares(free=3, waiting=[], elastic=[second, first]) == {"first": 4, "second": 3}
    assert shares(free=1, waiting=[], elastic=[second, first]) == {"first": 2, "second": 3}


def test_the_lowest_priority_gives_first_and_what_a_size_gives_too_much_is_lent_again() -> None:
    low, high = Elastic("low", 4, (2, 4), priority=1), Elastic("high", 4, (1, 2, 3, 4), priority=2)
    assert shares(free=0, waiting=[Waiting("urgent", 2, 9)], elastic=[low, high]) == {"low": 2, "high": 4}
    assert shares(free=0, waiting=[Waiting("urgent", 3, 9)], elastic=[low, high]) == {"low": 2, "high": 3}
    smaller = replace(high, nodes=3)
    assert shares(free=0, waiting=[Waiting("urgent", 1, 9)], elastic=[low, smaller]) == {"low": 2, "high": 4}


def test_nobody_is_served_before_one_of_a_higher_priority_that_waits_for_more_than_can_be_taken() -> None:
    waiting = [Waiting("large", 9, 3), Waiting("small", 2, 2)]
    assert shares(free=0, waiting=waiting, elastic=[FIVE]) == {"night": 5}


SIZES = st.sets(st.integers(1, 8), min_size=1).map(lambda found: tuple(sorted(found)))
JOBS = st.lists(
    st.builds(
        lambda sizes, which, priority: (sizes, sizes[which % len(sizes)], priority),
        SIZES,
        st.integers(0, 7),
        st.integers(0, 3),
    ),
    max_size=4,
).map(lambda found: [Elastic(f"e{n}", has, sizes, priority) for n, (sizes, has, priority) in enumerate(found)])
QUEUE = st.lists(st.tuples(st.integers(1, 10), st.integers(0, 4)), max_size=4).map(
    lambda found: [Waiting(f"w{n}", nodes, priority) for n, (nodes, priority) in enumerate(found)]
)


@given(free=st.integers(0, 8), waiting=QUEUE, elastic=JOBS)
def test_each_has_one_of_its_sizes_and_all_together_no_more_than_there_is(
    free: int, waiting: list[Waiting], elastic: list[Elastic]
) -> None:
    has = shares(free=free, waiting=waiting, elastic=elastic)
    assert all(has[one.job] in one.sizes for one in elastic)
    assert sum(has.values()) <= free + sum(one.nodes for one in elastic)


@given(free=st.integers(0, 8), waiting=QUEUE, elastic=JOBS)
def test_once_it_is_done_nothing_more_is_changed(free: int, waiting: list[Waiting], elastic: list[Elastic]) -> None:
    """Capacity does not come and go by what is decided here."""
    has = shares(free=free, waiting=waiting, elastic=elastic)
    after = [replace(one, nodes=has[one.job]) for one in elastic]
    left = free - sum(has[one.job] - one.nodes for one in elastic)
    assert shares(free=left, waiting=waiting, elastic=after) == has


@pytest.mark.parametrize(
    ("comment", "nodes"),
    [
        ("elastic=2:5", (3, 4, 5)),
        ("for the night, elastic=2,4", (3, 4)),
        ("elastic=2,3,6", (4, 6)),
        ("elastic=4:6", (4, 5, 6)),
        ("elastic=3", (3,)),
        ("elastic=5:2", ()),
        ("inelastic=2:5", ()),
        ("elastic=", ()),
        ("note", ()),
    ],
)
def test_an_elastic_job_keeps_a_majority_of_its_launchers(comment: str, nodes: tuple[int, ...]) -> None:
    assert elastic_nodes(comment) == nodes


@pytest.mark.parametrize("comment", ["elastic=2,3,6", "elastic=2:5", "elastic=2,4", "elastic=3,5"])
def test_launchers_leave_as_far_as_the_comment_says_and_no_further(comment: str) -> None:
    """By the launcher's own plan; one that is asked to leave too much stays."""
    sizes = tuple(sorted(int(size) for size in re.findall(r"\d+", comment)))
    sizes = tuple(range(sizes[0], sizes[1] + 1)) if ":" in comment else sizes
    most = sizes[-1]
    ranks = [m.RankStatus(slot=m.Slot(node, 0), rank=node, committed_step=5, state="valid") for node in range(most)]
    before = m.View(generation=1, nodes=(0,) * most, ranks=tuple(ranks), resume_step=5)
    for left in range(most, 1, -1):
        said = [
            m.Status(node=one.slot.node, incarnation=0, ranks=(one,), known_step=5, leaving=one.slot.node >= left)
            for one in ranks
        ]
        view = m.next_view(before, said, policy=m.Policy(world_size=most, sizes=sizes))
        assert isinstance(view, m.View)
        assert sum(node >= 0 for node in view.nodes) == max(left, min(elastic_nodes(comment)))
