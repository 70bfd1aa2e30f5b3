"""A plan as one page of tables and plots, for a screen, a phone and paper. It loads nothing from anywhere."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from holdfast.cli._plan_inputs import Inputs
from holdfast.cli._plan_output import (
    COST_COLUMNS,
    GOODPUT_COLUMNS,
    advice,
    comparison_rows,
    cost_cells,
    days,
    dollars,
    goodput_cells,
    headline,
    ledger_rows,
    percent,
    signed,
)
from holdfast.cli._plan_svg import Axis, Bar, bars, lines, strip
from holdfast.planner import ACCOUNTS, Plan, PlanAgainstActual, Stretch, example_run

FAILURES_SHOWN = 12
"""About as many failures are in the example of a run."""

SEEN_FROM = 0.005
"""Sensitivities below are 0 in the two digits that are printed."""

COLOURS = {account: index for index, account in enumerate(ACCOUNTS)}
LIGHT = ("#2a7f62", "#8fbf9f", "#b3423a", "#d98b2b", "#a65d8c", "#3f6fb5", "#7a9fd4", "#e0b341", "#8a5a3c", "#9aa0a6")
DARK = ("#4fb78f", "#2f6b57", "#e0736a", "#eaa650", "#c98ab3", "#6f9be0", "#4f6f9f", "#e8c766", "#b98763", "#6b7178")

STYLE = """
:root { color-scheme: light dark; --back: #fbfbf9; --card: #fff; --text: #1d2125; --dim: #5d656d; --line: #dcdfe2; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15181b; --card: #1d2125; --text: #e7e9eb; --dim: #a0a8b0; --line: #343a40; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 68rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
p { margin: .3rem 0 1rem; } .dim, figcaption { color: var(--dim); }
figcaption { font-size: .85rem; margin-top: .5rem; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
section, figure { margin: 0 0 1rem; padding: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; min-width: 0; }
.grid > figure { margin: 0; }
.grid + section { margin-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; color: var(--dim); } tr.chosen td { font-weight: 600; }
dl { margin: 0; display: grid; gap: .2rem 1rem; grid-template-columns: max-content 1fr; }
dt { font-weight: 600; } dd { margin: 0; } ul { margin: 0; padding-left: 1.1rem; font-size: .9rem; }
svg { display: block; width: 100%; height: auto; max-width: 34rem; }
svg text { font: 12px system-ui, sans-serif; fill: var(--dim); } svg .strong { fill: var(--text); }
svg .rule { stroke: var(--line); stroke-width: 1; }
.line { fill: none; stroke-width: 2; } .mark { stroke: var(--dim); stroke-dasharray: 4 3; }
.key { display: inline-block; margin-right: .8rem; white-space: nowrap; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.warning { border-left: 4px solid var(--c3); padding-left: .6rem; }
@media (max-width: 34rem) { body { padding: .7rem; } dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
@media print {
  :root { --back: #fff; --card: #fff; --text: #000; --dim: #333; --line: #bbb; }
  body { max-width: none; padding: 0; font-size: 10pt; } section, figure { break-inside: avoid; }
  .grid { grid-template-columns: 1fr 1fr; } .wide { overflow: visible; } th, td { white-space: normal; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def page(plan: Plan, inputs: Inputs, compared: PlanAgainstActual | None, *, seed: int) -> str:
    """The whole page. Equal inputs give an equal page."""
    figures = [_by_size(plan), _by_strategy(plan, inputs), _by_spares(plan), _example(plan, seed=seed)]
    sections = [_advice(plan, inputs), _outlooks(plan), _sensitivities(plan)]
    if compared is not None:
        figures += [_actual(index, compared) for index in range(len(compared.ledgers))]
        sections += [_compared(compared)]
    price = "" if inputs.usd_per_instance_hour is None else f"price {inputs.price_note}"
    title = f"Plan of {inputs.title}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_colours()}{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(headline(plan))}</p>
{_warnings(plan)}
{sections[0]}
<div class="grid">{"".join(figures)}</div>
{"".join(sections[1:])}
<section><h2>Assumed</h2><ul>{_items([*inputs.assumptions, price])}</ul></section>
</body>
</html>
"""


def _colours() -> str:
    def variables(colours: Sequence[str]) -> str:
        return "".join(f"--c{index}:{colour};" for index, colour in enumerate(colours))

    classes = "".join(
        f".f{index}{{fill:var(--c{index});background:var(--c{index})}}.l{index}{{stroke:var(--c{index})}}"
        for index in range(len(LIGHT))
    )
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    paper = f"@media print {{ :root {{ {variables(LIGHT)} }} }}"
    return f":root {{ {variables(LIGHT)} }}{dark}{paper}{classes}"


def _warnings(plan: Plan) -> str:
    return "".join(
        f'<p class="warning">{escape(each.title)}: {escape(each.warning)}</p>' for each in plan.outlooks if each.warning
    )


def _by_size(plan: Plan) -> str:
    sizes = [point[0] for point in plan.goodput_by_size[0].points]
    # Green, blue, red and so on rather than neighbouring shades; the legend has the same order.
    plot = lines(
        "goodput by cluster size",
        [(curve.name, curve.points) for curve in plan.goodput_by_size],
        x=Axis(label="instances", low=sizes[0], high=sizes[-1], ticks=sizes[::2], text=_thousands, logarithmic=True),
        y=_goodput_axis(0.0),
        mark=(plan.spares.target, f"target {100 * plan.spares.target:.4g}%"),
    )
    return _figure(
        "Goodput by cluster size", plot, "Renewal model. The more instances, the more often one of them fails."
    )


def _by_strategy(plan: Plan, inputs: Inputs) -> str:
    priced = inputs.usd_per_instance_hour is not None
    rows = []
    for each in plan.outlooks:
        if each.wall_h is None:
            rows.append(Bar(label=each.title, pieces=[], text="never ends"))
            continue
        whole = each.cost_usd if priced and each.cost_usd is not None else each.wall_h
        useful = whole * plan.base_h / each.wall_h
        text = dollars(each.cost_usd) if priced else days(each.wall_h)
        rows.append(Bar(label=each.title, pieces=[(0, useful), (2, whole - useful)], text=text))
    what = "Cost" if priced else "Time"
    keys = _keys([(0, "the work itself"), (2, "failures and checkpoints")])
    note = "" if priced else f" {escape(inputs.price_note)}"
    return _figure(f"{what} by strategy", bars(f"{what} by strategy", rows), f"{keys}{note}", escaped=True)


def _by_spares(plan: Plan) -> str:
    points = plan.spares.by_spares
    lowest = min([*(share for _, share in points), plan.spares.target])
    most = points[-1][0]
    step = max(1, math.ceil(most / 8))
    plot = lines(
        "goodput by number of spares",
        [("", [(float(count), share) for count, share in points])],
        x=Axis(label="spares", low=0, high=max(1, most), ticks=[float(tick) for tick in range(0, most + 1, step)]),
        y=_goodput_axis(max(0.0, math.floor(lowest * 20 - 0.5) / 20)),
        mark=(plan.spares.target, f"target {100 * plan.spares.target:.4g}%"),
    )
    title = next(each.title for each in plan.outlooks if each.strategy == plan.chosen)
    return _figure("Spares against goodput", plot, f"Renewal model, {title}.")


def _example(plan: Plan, *, seed: int) -> str:
    wall_h = next(each.wall_h for each in plan.outlooks if each.strategy == plan.chosen)
    span_h = min(wall_h or 24.0, FAILURES_SHOWN * (plan.mtbf_h or math.inf))
    return _timeline("One possible run", example_run(plan.scenario, hours=span_h, seed=seed), "Simulated.")


def _actual(index: int, compared: PlanAgainstActual) -> str:
    book = compared.ledgers[index]
    name = f"job {book.job}" if book.job else "the job"
    return _timeline(f"What happened to {name}", book.stretches, f"Goodput {percent(book.goodput or 0.0)}.")


def _timeline(title: str, stretches: Sequence[Stretch], remark: str) -> str:
    begin = stretches[0].start_ns if stretches else 0
    end = stretches[-1].end_ns if stretches else 0
    pieces = [(COLOURS[each.account], (each.start_ns - begin) / 1e9, (each.end_ns - begin) / 1e9) for each in stretches]
    seconds = (end - begin) / 1e9
    last = f"{seconds:,.0f} s" if seconds < 600 else days(seconds / 3600)
    seen = {each.account for each in stretches}
    keys = _keys([(COLOURS[account], account) for account in ACCOUNTS if account in seen])
    plot = strip(title, pieces, ends=("start, then row by row", last))
    return _figure(title, plot, f"{keys} {escape(remark)}", escaped=True)


def _advice(plan: Plan, inputs: Inputs) -> str:
    rows = "".join(f"<dt>{escape(what)}</dt><dd>{escape(text)}</dd>" for what, text in advice(plan, inputs))
    return f"<section><h2>What to do</h2><dl>{rows}</dl></section>"


def _outlooks(plan: Plan) -> str:
    chosen = [each.strategy == plan.chosen for each in plan.outlooks]
    goodputs = _table(
        ("strategy", *GOODPUT_COLUMNS), [(each.title, *goodput_cells(each)) for each in plan.outlooks], chosen
    )
    costs = _table(("strategy", *COST_COLUMNS), [(each.title, *cost_cells(each)) for each in plan.outlooks], chosen)
    return f"<section><h2>Strategies</h2>{goodputs}<p></p>{costs}</section>"


def _sensitivities(plan: Plan) -> str:
    rows = [(each.input, signed(each)) for each in plan.sensitivities if abs(each.percent_per_percent) >= SEEN_FROM]
    table = _table(("what the lost time hangs on", "change"), rows, [False] * len(rows))
    return f"<section><h2>Sensitivity</h2>{table}</section>"


def _compared(compared: PlanAgainstActual) -> str:
    rows, books = comparison_rows(compared), ledger_rows(compared)
    first = _table(("", "plan", "actual", "95 % interval", "plan within it"), rows, [False] * len(rows))
    second = _table(("where the time went", "seconds", "share"), books, [False] * (len(books) - 1) + [True])
    return f"<section><h2>Plan against actual</h2>{first}<p></p>{second}</section>"


def _table(head: Iterable[str], rows: Sequence[Sequence[str]], strong: Sequence[bool]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr{' class=chosen' if bold else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row, bold in zip(rows, strong, strict=True)
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _figure(title: str, plot: str, caption: str, *, escaped: bool = False) -> str:
    text = caption if escaped else escape(caption)
    return f"<figure><h2>{escape(title)}</h2>{plot}<figcaption>{text}</figcaption></figure>"


def _keys(keys: Iterable[tuple[int, str]]) -> str:
    return "".join(f'<span class="key"><i class="f{colour}"></i>{escape(name)}</span>' for colour, name in keys)


def _items(notes: Iterable[str]) -> str:
    return "".join(f"<li>{escape(note)}</li>" for note in notes if note)


def _goodput_axis(low: float) -> Axis:
    step = 0.2 if low < 0.5 else 0.1 if low < 0.8 else 0.05 if low < 0.9 else 0.02
    count = round((1 - low) / step)
    return Axis(
        label="goodput", low=low, high=1.0, ticks=[1 - step * index for index in range(count + 1)], text="{:.0%}".format
    )


def _thousands(value: float) -> str:
    return f"{value:,.0f}"
