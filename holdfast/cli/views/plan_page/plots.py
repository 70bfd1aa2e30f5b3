"""
Plots of a plan: lost time on a logarithmic axis instead of goodput.

The planned cluster and the targets have their own colours in every plot.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.views.plan_page.canvas import plot
from holdfast.cli.views.plan_page.colours import GOAL, HERE, TEXT, Colour, account, every, strategy
from holdfast.planner import CURVE_SIZES, Curve, Outlook, Plan, Shares, Stretch, Way

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEAR = 16
"""Ways on up to so many times more or fewer instances are drawn."""

LEAST_LOST_PERCENT = 1e-3
"""Where nothing is lost a logarithmic axis has to end somewhere."""

PARTS = {
    "checkpoint": "checkpoint",
    "detect": "detect",
    "replace": "replace",
    "resume": "rebuild",
    "redo": "redo",
    "fewer": "fewer",
}
"""Shares of the wall time that are lost, and the account whose colour they have."""

STRIP_ROWS = 4


def names(plan: Plan) -> list[str]:
    return [each.strategy for each in plan.outlooks]


def lost_percent(goodput: float) -> float:
    return max(LEAST_LOST_PERCENT, 100 * (1 - goodput))


def lost_by_size(plan: Plan) -> str:
    """Line per strategy over sizes, with the planned cluster and the target."""
    rows = names(plan)
    with plot("size", "lost time by cluster size", every(rows)) as drawn:
        axes = drawn.axes
        for name, curve in zip(rows, plan.goodput_by_size, strict=True):
            _line(axes, curve, strategy(rows, name), dashed="+" in name)
        here = plan.scenario.instances
        _mark(axes, here, f"this cluster: {here:,}")
        for each in plan.outlooks:
            chosen = each.strategy == plan.chosen
            axes.plot(here, lost_percent(each.goodput), "o", color=HERE.stand_in, markersize=6 if chosen else 3)
        axes.axhline(lost_percent(plan.spares.target), color=GOAL.stand_in, linewidth=1, linestyle=":")
        axes.set(xscale="log", xlabel="instances", ylabel="lost time")
        sizes = [size for size, _ in plan.goodput_by_size[0].points]
        _ticks(axes, "x", [size for size in CURVE_SIZES if size in sizes][::2], "{:,.0f}")
        _percent_axis(axes, [lost_percent(share or 0.0) for curve in plan.goodput_by_size for _, share in curve.points])
    return drawn.svg


def _mark(axes: "Axes", where: float, text: str) -> None:
    axes.axvline(where, color=HERE.stand_in, linewidth=1)
    axes.annotate(
        text,
        (where, 1),
        xycoords=("data", "axes fraction"),
        xytext=(3, 1),
        textcoords="offset points",
        color=HERE.stand_in,
    )


def _line(axes: "Axes", curve: Curve, colour: Colour, *, dashed: bool) -> None:
    sizes = [size for size, _ in curve.points]
    lost = [lost_percent(share or 0.0) for _, share in curve.points]
    axes.plot(sizes, lost, color=colour.stand_in, linestyle="--" if dashed else "-")


def lost_by_stage(plan: Plan) -> str:
    rows = names(plan)
    height_in = 0.6 + 0.37 * len(rows)
    with plot("stage", "what the lost time is made of", every(rows), height_in=height_in) as drawn:
        axes = drawn.axes
        for place, each in enumerate(plan.outlooks):
            left = 0.0
            lost = sum(_parts(each.shares).values())
            for part, share in _parts(each.shares).items():
                width = 100 * share / lost if lost > 0 else 0.0
                axes.barh(place, width, left=left, height=0.42, color=account(PARTS[part]).stand_in)
                left += width
            axes.text(0, place - 0.24, each.title, va="bottom", color=TEXT.stand_in)
            axes.text(100, place - 0.24, _amount(each), va="bottom", ha="right")
        axes.set(xlim=(0, 100), ylim=(len(rows) - 0.6, -0.85), yticks=[])
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        _ticks(axes, "x", [0, 25, 50, 75, 100], "{:.0f}%")
    return drawn.svg


def _parts(shares: Shares) -> dict[str, float]:
    return {part: max(0.0, getattr(shares, part)) for part in PARTS}


def _amount(each: Outlook) -> str:
    if each.lost_h is None:
        return "never ends"
    lost = f"{each.lost_h:,.1f} h" if each.lost_h < 48 else f"{each.lost_h / 24:,.1f} days"
    return f"{lost}, {100 * (1 - each.goodput):.2g}%"


def ways(plan: Plan) -> str:
    """Time against cost: every strategy on sizes near the planned one, and the limits."""
    rows, here = names(plan), plan.scenario.instances
    priced = any(each.cost_usd is not None for each in plan.ways.table)

    def is_near(each: Way) -> bool:
        return each.wall_h is not None and here / NEAR <= each.instances <= here * NEAR

    with plot("ways", "time against cost", every(rows)) as drawn:
        axes = drawn.axes
        for name in rows:
            near = [_place(each, priced=priced) for each in plan.ways.table if each.strategy == name and is_near(each)]
            colour = strategy(rows, name).stand_in
            style = "--" if "+" in name else "-"
            axes.plot(
                [x for x, _ in near], [y for _, y in near], color=colour, linestyle=style, marker=".", markersize=4
            )
        for each in plan.ways.table:
            if each.instances == here and each.strategy == plan.chosen and is_near(each):
                axes.plot(*_place(each, priced=priced), "o", color=HERE.stand_in, markersize=6)
        best = plan.ways.cheapest or (None if priced else plan.ways.cheapest_in_time)
        if best is not None and is_near(best):
            axes.plot(*_place(best, priced=priced), "*", color=GOAL.stand_in, markersize=9)
        axes.set(xscale="log", yscale="log", xlabel="days to train", ylabel="dollars" if priced else "instance-hours")
        if plan.ways.deadline_h is not None:
            axes.axvline(plan.ways.deadline_h / 24, color=GOAL.stand_in, linewidth=1, linestyle=":")
        if priced and plan.ways.budget_usd is not None:
            axes.axhline(plan.ways.budget_usd, color=GOAL.stand_in, linewidth=1, linestyle=":")
        for axis in "xy":
            _ticks(axes, axis, _round_between(*(axes.get_xlim() if axis == "x" else axes.get_ylim())), None)
    return drawn.svg


def _place(each: Way, *, priced: bool) -> tuple[float, float]:
    paid = each.cost_usd if priced else each.instance_hours
    return (each.wall_h or 0.0) / 24, paid or 0.0


def lost_by_spares(plan: Plan) -> str:
    """Lost time over the number of spares: planned ones, and those that pay."""
    rows = names(plan)
    points = plan.spares.by_spares
    with plot("spares", "lost time by number of spares", every(rows)) as drawn:
        axes = drawn.axes
        lost = [lost_percent(share) for _, share in points]
        counts = [count for count, _ in points]
        axes.plot(counts, lost, color=strategy(rows, plan.chosen).stand_in, marker=".")
        now = next(each for each in plan.outlooks if each.strategy == plan.chosen)
        _mark(axes, now.spares, f"planned: {now.spares:,}")
        axes.plot(now.spares, lost_percent(now.goodput), "o", color=HERE.stand_in, markersize=6)
        best = plan.cheapest_spares
        if best is not None and best.spares <= counts[-1]:
            axes.plot(best.spares, lost_percent(best.goodput), "*", color=GOAL.stand_in, markersize=9)
        axes.axhline(lost_percent(plan.spares.target), color=GOAL.stand_in, linewidth=1, linestyle=":")
        axes.set(xlabel="spares", ylabel="lost time")
        step = max(1, math.ceil(counts[-1] / 8))
        _ticks(axes, "x", [float(count) for count in range(0, counts[-1] + 1, step)], "{:.0f}")
        _percent_axis(axes, [*lost, lost_percent(plan.spares.target)])
    return drawn.svg


def strip(name: str, title: str, stretches: Sequence[Stretch], rows: Sequence[str]) -> str:
    begin = stretches[0].start_ns if stretches else 0
    span = max(1, (stretches[-1].end_ns if stretches else 0) - begin)
    with plot(name, title, every(rows), height_in=1.5) as drawn:
        axes = drawn.axes
        for each in stretches:
            for row in range(STRIP_ROWS):
                left = max((each.start_ns - begin) * STRIP_ROWS / span - row, 0.0)
                right = min((each.end_ns - begin) * STRIP_ROWS / span - row, 1.0)
                if right > left:
                    width = max(0.002, right - left)
                    # What was lost lies above what was useful, or a minute in a month would not be seen.
                    order = 1 if each.account == "useful" else 2
                    colour = account(each.account).stand_in
                    axes.barh(row, width, left=left, height=0.8, color=colour, zorder=order)
        axes.set(xlim=(0, 1), ylim=(STRIP_ROWS - 0.5, -0.5))
        axes.set_axis_off()
    return drawn.svg


def _percent_axis(axes: "Axes", lost: Sequence[float]) -> None:
    low, high = min(lost), min(100.0, max(lost))
    axes.set_yscale("log")
    axes.set_ylim(low / 1.6, min(130.0, high * 1.6))
    _ticks(axes, "y", _round_between(low / 1.6, min(110.0, high * 1.6)), "{:g}%")


def _round_between(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [round(value, 12) for value in found if low <= value <= high]
        if len(found) <= 7:
            break
    return found


def _ticks(axes: "Axes", axis: str, values: Sequence[float], text: str | None) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    one = axes.xaxis if axis == "x" else axes.yaxis
    one.set_major_locator(FixedLocator(list(values)))
    one.set_minor_locator(NullLocator())
    one.set_major_formatter(FuncFormatter(lambda value, _: _short(value) if text is None else text.format(value)))


def _short(value: float) -> str:
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:g}{letter}"
    return f"{value:g}"
