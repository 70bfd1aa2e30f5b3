import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from html import escape

from holdfast.cli.planning import Options
from holdfast.cli.planning.inputs import Inputs
from holdfast.cli.views.pages import document, plotting_files
from holdfast.cli.views.plan import (
    COST_COLUMNS,
    GOODPUT_COLUMNS,
    advice,
    comparison_rows,
    cost_cells,
    days,
    goodput_cells,
    headline,
    ledger_rows,
    percent,
    signed,
)
from holdfast.cli.views.plan_page import plots
from holdfast.cli.views.plan_page.colours import account, every, strategy, stylesheet
from holdfast.cli.views.plan_page.style import STYLE
from holdfast.planner import ACCOUNTS, Plan, PlanAgainstActual, Stretch, example_run

FAILURES_SHOWN = 12
"""About as many failures are in the example of a run."""

SEEN_FROM = 0.005
"""Sensitivities below are 0 in the two digits that are printed."""


def page(
    plan: Plan, inputs: Inputs, compared: PlanAgainstActual | None, *, seed: int, made_at: datetime, version: str
) -> str:
    """Page; equal arguments give equal pages."""
    rows = plots.names(plan)
    ways = _keys_of_strategies(plan)
    here = _key("here", "this cluster") + _dotted("asked for")
    answer = '<span class="key"><b>★</b>the cheapest within it</span>'
    drawn = {
        "size": plots.lost_by_size(plan),
        "stage": plots.lost_by_stage(plan),
        "ways": plots.ways(plan),
        "spares": plots.lost_by_spares(plan),
    }
    figures = [
        _figure("Lost time by cluster size", "size", f"{ways}{here} Renewal model."),
        _figure("What the lost time is made of", "stage", _keys_of_parts(plan)),
        _figure("Time against cost", "ways", f"{ways}{here}{answer} A point for each size."),
        _figure(
            "Lost time by spares",
            "spares",
            f'{here}<span class="key"><b>★</b>the number that pays</span> Renewal model, {escape(_title(plan))}.',
        ),
        _example(plan, drawn, seed=seed),
    ]
    sections = [_advice(plan, inputs), _outlooks(plan)]
    last = [_sensitivities(plan, inputs)]
    if compared is not None:
        figures += [_actual(index, compared, drawn) for index in range(len(compared.ledgers))]
        last.insert(0, _compared(compared))
    price = [] if inputs.usd_per_instance_hour is None else [f"price {inputs.price_note}"]
    title = f"Plan of {inputs.title}"
    files = plotting_files()
    body = f"""<h1>{escape(title)}</h1>
<p class="dim">{made_at:%Y-%m-%d %H:%M} UTC, Holdfast {escape(version)}, {escape(_simulated(plan, seed))}</p>
<p>{escape(headline(plan))}</p>
{_warnings(plan)}
{"".join(sections)}
<div class="grid">{"".join(figures)}</div>
{"".join(last)}
{_inputs(plan, inputs)}
<section><h2>Assumed</h2><ul>{_items([*inputs.assumptions, *price])}</ul></section>"""
    return document(
        title,
        body,
        styles=[stylesheet(every(rows)), STYLE, files["uplot.css"].content.decode()],
        scripts=[files[name].content.decode() for name in ("uplot.js", "plots.js")],
        data={"plots": drawn},
    )


def _simulated(plan: Plan, seed: int) -> str:
    runs = max((each.simulation.runs for each in plan.outlooks if each.simulation is not None), default=0)
    return f"{runs:,} simulated runs for each strategy with seed {seed}"


def _title(plan: Plan) -> str:
    return next(each.title for each in plan.outlooks if each.strategy == plan.chosen)


def _warnings(plan: Plan) -> str:
    return "".join(
        f'<p class="warning">{escape(each.title)}: {escape(each.warning)}</p>' for each in plan.outlooks if each.warning
    )


def _example(plan: Plan, drawn: dict[str, plots.Json], *, seed: int) -> str:
    wall_h = next(each.wall_h for each in plan.outlooks if each.strategy == plan.chosen)
    span_h = min(wall_h or 24.0, FAILURES_SHOWN * (plan.mtbf_h or math.inf))
    stretches = example_run(plan.scenario, hours=span_h, seed=seed)
    drawn["run"] = plots.strip(stretches)
    return _timeline("run", "One possible run", stretches, "Simulated.")


def _actual(index: int, compared: PlanAgainstActual, drawn: dict[str, plots.Json]) -> str:
    book = compared.ledgers[index]
    name = f"job {book.job}" if book.job else "the job"
    remark = f"Goodput {percent(book.goodput or 0.0)}."
    drawn[f"actual{index}"] = plots.strip(book.stretches)
    return _timeline(f"actual{index}", f"What happened to {name}", book.stretches, remark)


def _timeline(name: str, title: str, stretches: Sequence[Stretch], remark: str) -> str:
    seconds = (stretches[-1].end_ns - stretches[0].start_ns) / 1e9 if stretches else 0.0
    span = f"{seconds:,.0f} s" if seconds < 600 else days(seconds / 3600)
    seen = {each.account for each in stretches}
    keys = "".join(_key(account(each).variable, each) for each in ACCOUNTS if each in seen)
    text = f"{keys} From left to right and from row to row, {escape(span)} in all. {escape(remark)}"
    return _figure(title, name, text)


def _keys_of_strategies(plan: Plan) -> str:
    rows = plots.names(plan)
    return "".join(
        f'<span class="key"><i class="stroke{" dashed" if "+" in each.strategy else ""} '
        f'k-{strategy(rows, each.strategy).variable}"></i>{escape(each.title)}</span>'
        for each in plan.outlooks
    )


def _keys_of_parts(plan: Plan) -> str:
    seen = [part for part in plots.PARTS if any(getattr(each.shares, part) > 0 for each in plan.outlooks)]
    return "".join(_key(account(plots.PARTS[part]).variable, plots.PARTS[part]) for part in seen)


def _key(variable: str, name: str) -> str:
    return f'<span class="key"><i class="k-{variable}"></i>{escape(name)}</span>'


def _dotted(name: str) -> str:
    return f'<span class="key"><i class="stroke dotted k-goal"></i>{escape(name)}</span>'


def _advice(plan: Plan, inputs: Inputs) -> str:
    rows = "".join(f"<dt>{escape(what)}</dt><dd>{escape(text)}</dd>" for what, text in advice(plan, inputs))
    return f"<section><h2>What to do</h2><dl>{rows}</dl></section>"


def _outlooks(plan: Plan) -> str:
    chosen = [each.strategy == plan.chosen for each in plan.outlooks]
    goodputs = _table(
        ("strategy", *GOODPUT_COLUMNS),
        [(each.title, *goodput_cells(each)) for each in plan.outlooks],
        chosen,
        numbers=True,
    )
    costs = _table(
        ("strategy", *COST_COLUMNS), [(each.title, *cost_cells(each)) for each in plan.outlooks], chosen, numbers=True
    )
    return f"<section><h2>Strategies</h2>{goodputs}<p></p>{costs}</section>"


def _sensitivities(plan: Plan, inputs: Inputs) -> str:
    rows = [
        (each.input, signed(each), inputs.origins.get(each.input, ""))
        for each in plan.sensitivities
        if abs(each.percent_per_percent) >= SEEN_FROM
    ]
    table = _table(("what the lost time hangs on", "change", "which is"), rows, [False] * len(rows))
    return f"<section><h2>Sensitivity</h2>{table}</section>"


def _inputs(plan: Plan, inputs: Inputs) -> str:
    scenario, strategy = plan.scenario, plan.scenario.strategy
    rows = [
        ("instances that train", f"{scenario.instances:,}"),
        ("spares", f"{scenario.spares:,}"),
        ("failure rate", f"{scenario.failures.per_instance_hour:.4%} per instance-hour"),
        ("time to detect", f"{strategy.detect_s:,.0f} s"),
        ("time to replace", f"{strategy.replace_s:,.0f} s"),
        ("time to resume", f"{strategy.resume_s:,.0f} s"),
        ("checkpoint interval", f"{scenario.checkpoints.interval_s:,.0f} s"),
        ("time to write a checkpoint", f"{scenario.checkpoints.write_s:,.0f} s"),
    ]
    cells = [(name, value, inputs.origins.get(name, "")) for name, value in rows]
    values = {one.name: getattr(inputs.options, one.name) for one in fields(Options)}
    given = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items() if value is not None)
    table = _table(("planned with", _title(plan), "which is"), cells, [False] * len(cells))
    return f'<section><h2>Inputs</h2>{table}<p class="dim">Options: {escape(given)}.</p></section>'


def _compared(compared: PlanAgainstActual) -> str:
    rows, books = comparison_rows(compared), ledger_rows(compared)
    first = _table(("", "plan", "actual", "95 % interval", "plan within it"), rows, [False] * len(rows))
    second = _table(("where the time went", "seconds", "share"), books, [False] * (len(books) - 1) + [True])
    return f"<section><h2>Plan against actual</h2>{first}<p></p>{second}</section>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], strong: Sequence[bool], *, numbers: bool = False) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr{' class=chosen' if bold else ''}>"
        + "".join(f'<td data-is="{escape(name)}">{escape(cell)}</td>' for name, cell in zip(head, row, strict=True))
        + "</tr>"
        for row, bold in zip(rows, strong, strict=True)
    )
    return f"<table{' class=numbers' if numbers else ''}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _figure(title: str, plot: str, caption: str) -> str:
    """``caption`` is HTML; ``plot`` the name of what is drawn."""
    place = f'<div class="plot" data-plot="{plot}" role="img" aria-label="{escape(title)}"></div>'
    return f"<figure><h2>{escape(title)}</h2>{place}<figcaption>{caption}</figcaption></figure>"


def _items(notes: Iterable[str]) -> str:
    return "".join(f"<li>{escape(note)}</li>" for note in notes)
