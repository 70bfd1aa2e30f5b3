"""What a template does not order overlaps, in time that nobody waits for."""

import threading
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.aws.cloudformation.timing import Course, run_in_time
from holdfast.localcloud.aws.common import now, reset_clock

USER, PROVIDER = Course(seconds=100, user=True), Course(seconds=10)


def order(
    needs: Mapping[str, set[str]], courses: Mapping[str, Course], late: frozenset[str] = frozenset()
) -> list[str]:
    called: list[str] = []
    errors = run_in_time(
        needs,
        lambda name, _switch: called.append(name),
        courses=courses,
        stopping=threading.Event(),
        skip=True,
        late=late,
    )
    assert errors == {}
    return called


def test_a_user_begins_before_a_provider_that_it_does_not_wait_for_is_there():
    courses = {"cluster": USER, "policy": PROVIDER}

    assert order({"cluster": set(), "policy": set()}, courses) == ["cluster", "policy"]
    assert order({"cluster": {"policy"}, "policy": set()}, courses) == ["policy", "cluster"]


def test_a_short_provider_is_there_for_a_user_that_begins_late_enough():
    courses = {"cluster": USER, "policy": PROVIDER, "vpc": Course(seconds=12)}

    assert order({"cluster": {"vpc"}, "policy": set(), "vpc": set()}, courses) == ["policy", "vpc", "cluster"]


def test_what_comes_late_comes_after_everything_that_does_not_wait_for_it():
    courses = dict.fromkeys("abcd", PROVIDER)
    needs = {"a": set(), "b": {"a"}, "c": set(), "d": {"c"}}

    assert order(needs, courses, frozenset("a")) == ["c", "d", "a", "b"]


def test_a_failure_ends_the_run_and_what_waits_is_not_begun():
    def work(name, switch):
        called.append(name)
        if name == "a":
            raise ValueError(name)

    called = []
    courses = {"a": PROVIDER, "b": PROVIDER, "late": Course(seconds=50)}
    errors = run_in_time(
        {"a": set(), "b": {"a"}, "late": set()}, work, courses=courses, stopping=threading.Event(), skip=True
    )

    assert (set(errors), called) == ({"a"}, ["a"])


def test_a_wait_that_is_skipped_passes_on_the_clock():
    before = now()

    run_in_time(
        {"a": set()},
        lambda _name, switch: switch.pause(3600),
        courses={"a": USER},
        stopping=threading.Event(),
        skip=True,
    )

    passed = now() - before
    reset_clock()
    assert passed.total_seconds() >= 3600


GRAPHS = st.integers(min_value=1, max_value=8).flatmap(
    lambda size: st.tuples(
        st.lists(st.sets(st.integers(min_value=0, max_value=7)), min_size=size, max_size=size),
        st.lists(st.tuples(st.booleans(), st.integers(min_value=0, max_value=50)), min_size=size, max_size=size),
    )
)


@given(GRAPHS)
def test_everything_is_called_once_and_after_all_it_needs(graph):
    edges, kinds = graph
    needs = {str(number): {str(other) for other in found if other < number} for number, found in enumerate(edges)}
    courses = {str(number): Course(seconds=seconds, user=user) for number, (user, seconds) in enumerate(kinds)}

    called = order(needs, courses)

    assert sorted(called) == sorted(needs)
    assert all(called.index(other) < called.index(name) for name, found in needs.items() for other in found)
