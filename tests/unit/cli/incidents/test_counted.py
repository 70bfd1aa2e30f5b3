"""Time of an instance in several incidents counts once, in whatever order they begin and end."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.views.incidents.costs import _CountedTime

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


@given(SPANS)
def test_each_moment_counts_for_the_first_span_that_has_it(spans: list[tuple[int, int]]) -> None:
    counted, seen = _CountedTime(), set[int]()
    for start, end in spans:
        moments = set(range(start, end))
        assert counted.add(start, end) == len(moments - seen)
        seen |= moments
