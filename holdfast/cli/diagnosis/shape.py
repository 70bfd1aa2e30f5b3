"""Shape of the time of a step: steady, sudden, gradual or periodic; and the age of the last step."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

from holdfast.cli.diagnosis.evidence import Pace

LEAST = 6
"""Intervals below which no shape is named."""
SLOWER = 1.5
"""Ratio of medians from which the time of a step has changed."""
PEAK = 3.0
"""Multiple of the median from which an interval is a peak."""
MOST_PEAKS = 0.3


def pace_of(
    marks: Sequence[tuple[float, float]], *, now_s: float, age_s: float | None = None, longest_s: float | None = None
) -> Pace:
    """
    Return the pace of an attempt.

    Args:
        marks: (seconds since 1970, finished steps) of its reports in order of time; the first is its beginning.
        age_s: Of the last step, where the launcher reports it. Default: since the last report that has a new step.
        longest_s: Longest step, where the launcher reports it.
    """
    if not marks:
        return Pace(age_s=age_s, longest_s=longest_s)
    moved = [marks[0]]
    for at_s, step in marks[1:]:
        if step > moved[-1][1]:
            moved.append((at_s, step))
    spans = [((at - before) / (step - from_step), step) for (before, from_step), (at, step) in pairwise(moved)]
    # The first span has the start of the ranks in it.
    known = spans[1:] if len(spans) > 1 else spans
    seconds = [span for span, _ in known]
    gaps = [at - before for (before, _), (at, _) in pairwise(moved)][1:]
    longest = max([*gaps, *([longest_s] if longest_s else [])], default=None)
    return Pace(
        step=int(moved[-1][1]),
        usual_s=statistics.median(seconds) if seconds else None,
        longest_s=longest,
        age_s=max(0.0, now_s - moved[-1][0]) if age_s is None else age_s,
        shape=shape_of(known),
        is_first=len(moved) == 1,
    )


def shape_of(spans: Sequence[tuple[float, float]]) -> str:
    """
    Return the shape in words; empty if too little is known.

    Args:
        spans: (seconds of a step, step reached) of each report.
    """
    if len(spans) < LEAST:
        return ""
    seconds = [span for span, _ in spans]
    middle = statistics.median(seconds)
    if middle <= 0:
        return ""
    peaks = [place for place, span in enumerate(seconds) if span >= PEAK * middle]
    if found := _periodic(spans, peaks, middle):
        return found
    calm = [one for place, one in enumerate(spans) if place not in peaks] if len(peaks) <= 2 else list(spans)
    return _changed(calm) or f"steady: {_span(middle)} a step"


def _periodic(spans: Sequence[tuple[float, float]], peaks: Sequence[int], middle: float) -> str:
    if len(peaks) < 3 or len(peaks) > MOST_PEAKS * len(spans):
        return ""
    steps = [spans[place][1] for place in peaks]
    between = [after - before for before, after in pairwise(steps)]
    usual = statistics.median(between)
    if usual <= 0 or any(abs(one - usual) > 0.25 * usual for one in between):
        return ""
    slow = statistics.median([spans[place][0] for place in peaks])
    return f"periodic: {_span(slow)} in place of {_span(middle)} a step about every {usual:.0f} steps"


def _changed(spans: Sequence[tuple[float, float]]) -> str:
    seconds = [span for span, _ in spans]
    third = max(2, len(seconds) // 3)
    first, last = statistics.median(seconds[:third]), statistics.median(seconds[-third:])
    if first <= 0 or last < SLOWER * first:
        return ""
    cut = _cut(seconds)
    before, after = statistics.median(seconds[:cut]), statistics.median(seconds[cut:])
    sides = [abs(one - (before if place < cut else after)) for place, one in enumerate(seconds)]
    if statistics.mean(sides) < 0.2 * (after - before):
        return f"sudden: {_span(before)} a step until step {spans[cut - 1][1]:.0f}, {_span(after)} since"
    return f"gradual: from {_span(first)} to {_span(last)} a step"


def _cut(seconds: Sequence[float]) -> int:
    """Place that divides the spans into two sides of least spread."""

    def spread(cut: int) -> float:
        sides = (seconds[:cut], seconds[cut:])
        return sum(abs(one - statistics.median(side)) for side in sides for one in side)

    return min(range(2, len(seconds) - 1), key=spread)


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"
