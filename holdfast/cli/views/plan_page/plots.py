"""
Plots of a plan as data, which the page draws: lost time on a logarithmic axis instead of goodput. Pure.

The planned cluster and the targets have their own colours in every plot.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.cli.views.plan_page.colours import GOAL, HERE, account, strategy
from holdfast.planner import CURVE_SIZES, Outlook, Plan, Shares, Stretch, Way

Json = dict[str, Any]
Point = tuple[float, float]

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


def lost_by_size(plan: Plan) -> Json:
    """Line per strategy over sizes, with the planned cluster and the target."""
    rows, here = names(plan), plan.scenario.instances
    lines = [
        _line(
            strategy(rows, name).variable,
            [(size, lost_percent(share or 0.0)) for size, share in curve.points],
            dashed="+" in name,
        )
        for name, curve in zip(rows, plan.goodput_by_size, strict=True)
    ]
    marks = [
        _mark(here, lost_percent(each.goodput), HERE.variable, size=4 if each.strategy == plan.chosen else 2.5)
        for each in plan.outlooks
    ]
    sizes = [size for size, _ in plan.goodput_by_size[0].points]
    ticks = [size for size in CURVE_SIZES if size in sizes][::2]
    return _curves(
        lines,
        marks,
        rules=[
            _rule(HERE.variable, x=here, text=f"this cluster: {here:,}"),
            _rule(GOAL.variable, y=lost_percent(plan.spares.target), dotted=True),
        ],
        x=_axis("instances", [*sizes, here], ticks=[(size, f"{size:,.0f}") for size in ticks], log=True),
        y=_percent_axis(y for line in lines for _, y in line["points"]),
    )


def lost_by_stage(plan: Plan) -> Json:
    rows = []
    for each in plan.outlooks:
        parts, left = _parts(each.shares), 0.0
        lost = sum(parts.values())
        drawn = []
        for part, share in parts.items():
            width = share / lost if lost > 0 else 0.0
            if width > 0:
                drawn.append((round(left, 5), round(left + width, 5), account(PARTS[part]).variable))
            left += width
        rows.append({"title": each.title, "amount": _amount(each), "parts": drawn})
    return {"kind": "strips", "rows": rows}


def _parts(shares: Shares) -> dict[str, float]:
    return {part: max(0.0, getattr(shares, part)) for part in PARTS}


def _amount(each: Outlook) -> str:
    if each.lost_h is None:
        return "never ends"
    lost = f"{each.lost_h:,.1f} h" if each.lost_h < 48 else f"{each.lost_h / 24:,.1f} days"
    return f"{lost}, {100 * (1 - each.goodput):.2g}%"


def ways(plan: Plan) -> Json:
    """Time against cost: every strategy on sizes near the planned one, and the limits."""
    rows, here = names(plan), plan.scenario.instances
    priced = any(each.cost_usd is not None for each in plan.ways.table)

    def is_near(each: Way) -> bool:
        return each.wall_h is not None and here / NEAR <= each.instances <= here * NEAR

    near = [each for each in plan.ways.table if is_near(each)]
    lines = [
        _line(
            strategy(rows, name).variable,
            [_place(each, priced=priced) for each in near if each.strategy == name],
            dashed="+" in name,
            dots=True,
        )
        for name in rows
    ]
    marks = [
        _mark(*_place(each, priced=priced), HERE.variable, size=4)
        for each in near
        if each.instances == here and each.strategy == plan.chosen
    ]
    best = plan.ways.cheapest or (None if priced else plan.ways.cheapest_in_time)
    if best is not None and is_near(best):
        marks.append(_mark(*_place(best, priced=priced), GOAL.variable, star=True))
    rules = []
    if plan.ways.deadline_h is not None:
        rules.append(_rule(GOAL.variable, x=plan.ways.deadline_h / 24, dotted=True))
    if priced and plan.ways.budget_usd is not None:
        rules.append(_rule(GOAL.variable, y=plan.ways.budget_usd, dotted=True))
    points = [point for line in lines for point in line["points"]] or [(1.0, 1.0)]
    xs = [x for x, _ in points] + [rule["x"] for rule in rules if rule["x"] is not None]
    ys = [y for _, y in points] + [rule["y"] for rule in rules if rule["y"] is not None]
    return _curves(
        lines,
        marks,
        rules=rules,
        x=_axis("days to train", xs, log=True),
        y=_axis("dollars" if priced else "instance-hours", ys, log=True),
    )


def _place(each: Way, *, priced: bool) -> Point:
    paid = each.cost_usd if priced else each.instance_hours
    return (each.wall_h or 0.0) / 24, paid or 0.0


def lost_by_spares(plan: Plan) -> Json:
    """Lost time over the number of spares: planned ones, and those that pay."""
    rows = names(plan)
    points = [(float(count), lost_percent(share)) for count, share in plan.spares.by_spares]
    most = points[-1][0]
    now = next(each for each in plan.outlooks if each.strategy == plan.chosen)
    marks = [_mark(now.spares, lost_percent(now.goodput), HERE.variable, size=4)]
    best = plan.cheapest_spares
    if best is not None and best.spares <= most:
        marks.append(_mark(best.spares, lost_percent(best.goodput), GOAL.variable, star=True))
    target = lost_percent(plan.spares.target)
    step = max(1, math.ceil(most / 8))
    return _curves(
        [_line(strategy(rows, plan.chosen).variable, points, dots=True)],
        marks,
        rules=[
            _rule(HERE.variable, x=now.spares, text=f"planned: {now.spares:,}"),
            _rule(GOAL.variable, y=target, dotted=True),
        ],
        x={
            "label": "spares",
            "log": False,
            "range": [-0.04 * most, 1.04 * max(most, now.spares)],
            "ticks": [(count, str(count)) for count in range(0, int(most) + 1, step)],
        },
        y=_percent_axis([*(y for _, y in points), target]),
    )


def strip(stretches: Sequence[Stretch]) -> Json:
    """Stretches from left to right and from row to row; what was lost lies above what was useful, and is seen."""
    begin = stretches[0].start_ns if stretches else 0
    span = max(1, (stretches[-1].end_ns if stretches else 0) - begin)
    ordered = sorted(stretches, key=lambda each: each.account != "useful")
    rows = []
    for row in range(STRIP_ROWS):
        parts = []
        for each in ordered:
            left = max((each.start_ns - begin) * STRIP_ROWS / span - row, 0.0)
            right = min((each.end_ns - begin) * STRIP_ROWS / span - row, 1.0)
            if right > left:
                parts.append((round(left, 5), round(right, 5), account(each.account).variable))
        rows.append({"title": "", "amount": "", "parts": parts})
    return {"kind": "strips", "rows": rows}


def _curves(lines: list[Json], marks: list[Json], *, rules: list[Json], x: Json, y: Json) -> Json:
    return {"kind": "curves", "lines": lines, "marks": marks, "rules": rules, "x": x, "y": y}


def _line(colour: str, points: Sequence[Point], *, dashed: bool = False, dots: bool = False) -> Json:
    return {"colour": colour, "points": [*points], "dashed": dashed, "dots": dots}


def _mark(x: float, y: float, colour: str, *, size: float = 0.0, star: bool = False) -> Json:
    return {"x": x, "y": y, "colour": colour, "size": size, "star": star}


def _rule(colour: str, *, x: float | None = None, y: float | None = None, text: str = "", dotted: bool = False) -> Json:
    return {"colour": colour, "x": x, "y": y, "text": text, "dotted": dotted}


def _percent_axis(lost: Iterable[float]) -> Json:
    values = [*lost]
    low, high = min(values) / 1.6, min(130.0, min(100.0, max(values)) * 1.6)
    ticks = [(value, f"{value:g}%") for value in _round_between(low, min(110.0, high))]
    return {"label": "lost time", "log": True, "range": [low, high], "ticks": ticks}


def _axis(label: str, values: Sequence[float], *, ticks: Sequence[tuple[float, str]] = (), log: bool) -> Json:
    low, high = min(values) / 1.15, max(values) * 1.15
    known = [*ticks] or [(value, _short(value)) for value in _round_between(low, high)]
    return {"label": label, "log": log, "range": [low, high], "ticks": known}


def _round_between(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [round(value, 12) for value in found if low <= value <= high]
        if len(found) <= 7:
            break
    return found


def _short(value: float) -> str:
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:g}{letter}"
    return f"{value:g}"
