"""Who has how many nodes where some jobs are elastic."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_common import Elastic, Waiting, shares

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
