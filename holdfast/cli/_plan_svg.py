"""Plots as inline SVG, drawn by a few functions: lines, steps, bars and a strip of time. Colours are the page's."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 270
LEFT, RIGHT, TOP, BOTTOM = 48, 20, 12, 40
ROW = 44
"""Height of a bar with its label."""

Points = Sequence[tuple[float, float | None]]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis: its label, its ends, and the ticks on it."""

    label: str
    low: float
    high: float
    ticks: Sequence[float]
    text: Callable[[float], str] = "{:g}".format
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar of several pieces; ``text`` stands at its end."""

    label: str
    pieces: Sequence[tuple[int, float]]
    """Colour and length of each piece."""
    text: str


def lines(
    title: str, series: Sequence[tuple[str, Points]], *, x: Axis, y: Axis, mark: tuple[float, str] | None = None
) -> str:
    """
    A line for each series, with a legend above.

    Args:
        title: What screen readers say.
        series: Names and points; a line breaks where y is None.
        x: Horizontal axis.
        y: Vertical axis.
        mark: A horizontal line and its name. Default: none
    """
    legend_height = 16 * len(series) if len(series) > 1 else 0
    parts = [_axes(x, y)]
    if mark is not None:
        at = _y(y, mark[0])
        parts.append(f'<line class="mark" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT + 4}" y="{at + 13:.1f}">{escape(mark[1])}</text>')
    for colour, (_, points) in enumerate(series):
        for run in _runs(points):
            path = " ".join(f"{_x(x, px):.1f},{_y(y, py):.1f}" for px, py in run)
            parts.append(f'<polyline class="line l{colour}" points="{path}"/>')
            if len(run) <= 12:
                parts += [
                    f'<circle class="f{colour}" cx="{_x(x, px):.1f}" cy="{_y(y, py):.1f}" r="3"/>' for px, py in run
                ]
    parts += [
        f'<rect class="f{colour}" x="{LEFT + 8}" y="{HEIGHT + 16 * colour - 1}" width="10" height="10"/>'
        f'<text x="{LEFT + 24}" y="{HEIGHT + 16 * colour + 8}">{escape(name)}</text>'
        for colour, (name, _) in enumerate(series)
        if legend_height
    ]
    return _svg(title, HEIGHT + legend_height, parts)


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars, one below the other, all to the same scale."""
    longest = max((sum(length for _, length in row.pieces) for row in rows), default=0.0) or 1.0
    parts: list[str] = []
    for index, row in enumerate(rows):
        top, at = index * ROW, 0.0
        parts.append(f'<text class="strong" x="0" y="{top + 12}">{escape(row.label)}</text>')
        parts.append(f'<text x="{WIDTH}" y="{top + 12}" text-anchor="end">{escape(row.text)}</text>')
        for colour, length in row.pieces:
            width = length / longest * WIDTH
            parts.append(f'<rect class="f{colour}" x="{at:.1f}" y="{top + 18}" width="{width:.1f}" height="14"/>')
            at += width
    return _svg(title, max(1, len(rows)) * ROW, parts)


def strip(title: str, stretches: Iterable[tuple[int, float, float]], *, ends: tuple[str, str]) -> str:
    """
    Time from left to right, in as many rows as make it readable on a phone.

    Args:
        title: What screen readers say.
        stretches: Colour, start and end of each, in the same unit, beginning at 0.
        ends: What stands at the beginning and at the end.
    """
    known = list(stretches)
    span = max((end for _, _, end in known), default=0.0) or 1.0
    rows, height = 4, 22
    parts: list[str] = []
    for colour, start, end in known:
        for row in range(rows):
            left, right = max(start, row * span / rows), min(end, (row + 1) * span / rows)
            if right > left:
                x = (left * rows / span - row) * WIDTH
                # At least a hair of width: a failure of a minute in a month should still be seen.
                width = max(0.8, (right - left) * rows / span * WIDTH)
                top = row * (height + 6)
                parts.append(f'<rect class="f{colour}" x="{x:.2f}" y="{top}" width="{width:.2f}" height="{height}"/>')
    bottom = rows * (height + 6) + 10
    parts.append(f'<text x="0" y="{bottom}">{escape(ends[0])}</text>')
    parts.append(f'<text x="{WIDTH}" y="{bottom}" text-anchor="end">{escape(ends[1])}</text>')
    return _svg(title, bottom + 4, parts)


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _axes(x: Axis, y: Axis) -> str:
    parts = []
    for tick in y.ticks:
        at = _y(y, tick)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(y.text(tick))}</text>')
    for tick in x.ticks:
        at = _x(x, tick)
        parts.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{escape(x.text(tick))}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>')
    return "".join(parts)


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.part(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.part(value) * (HEIGHT - TOP - BOTTOM)


def _runs(points: Points) -> list[list[tuple[float, float]]]:
    """Split where there is no y."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]
