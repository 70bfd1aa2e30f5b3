from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.cli.planning.inputs import Inputs
from holdfast.cli.views.plan.words import days, dollars, hours, number, percent, short, short_dollars
from holdfast.planner import (
    Elasticity,
    Estimate,
    Outlook,
    Plan,
    PlanAgainstActual,
    Way,
    ledger_total,
)

GOODPUT_COLUMNS = ("spares", "min/failure", "first order", "renewal", "simulated")
COST_COLUMNS = ("to train", "5 to 95 %, d", "lost", "cost", "saves", "saves $")

ASSUMED = "assumption"
"""Source of unpublished recovery times."""

IF_IT_SCALES = "if throughput grows with the number of instances"


def render_plan(plan: Plan, inputs: Inputs, compared: PlanAgainstActual | None) -> RenderableType:
    parts: list[RenderableType] = [
        Rule(Text(inputs.title, style="bold"), style="dim"),
        Text(headline(plan)),
        _goodputs(plan),
        _costs(plan),
    ]
    parts += [Text(f"{each.title}: {each.warning}", style="yellow") for each in plan.outlooks if each.warning]
    if inputs.usd_per_instance_hour is None:
        parts.append(Text(inputs.price_note, style="dim"))
    parts.append(_pairs("advice", advice(plan, inputs)))
    if inputs.standing:
        parts.append(_standing(inputs))
    if compared is not None:
        parts += [_comparison(compared), _ledger(compared)]
    parts.append(_pairs("assumed", [("-", note) for note in _notes(inputs)], style="dim"))
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def _standing(inputs: Inputs) -> Table:
    title = Text(f"beside the nodes, each month ({inputs.standing_note})", style="bold")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1))
    table.add_column("what")
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("price", style="dim")
    for each in inputs.standing:
        cost = "by use" if each.usd_per_month is None else dollars(each.usd_per_month)
        table.add_row(each.what, cost, each.price)
    total = sum(each.usd_per_month for each in inputs.standing if each.usd_per_month is not None)
    table.add_row("sum, without use", dollars(total), "")
    return table


def headline(plan: Plan) -> str:
    scenario = plan.scenario
    often = "nothing fails" if plan.mtbf_h is None else f"one failure every {hours(plan.mtbf_h)}"
    return (
        f"{scenario.instances:,} instances with {scenario.accelerators_per_instance} accelerators each: {often}. "
        f"{plan.accelerator_hours:,.0f} accelerator hours are {days(plan.base_h)} when nothing fails."
    )


def advice(plan: Plan, inputs: Inputs) -> list[tuple[str, str]]:
    """Advice as (subject, sentence), each with its most sensitive input and that input's source."""
    rows: list[tuple[str, str]] = []
    interval, spares = plan.interval, plan.spares
    if plan.scenario.strategy.redo == "checkpoint" and interval.goodput_best == 0:
        rows.append(("checkpoints", "no interval: training never ends"))
    elif interval.best_s is not None and interval.young_s is not None and interval.daly_s is not None:
        rows.append(
            (
                "checkpoint every",
                f"{interval.best_s:,.0f} s for a goodput of {percent(interval.goodput_best)} "
                f"(Young {interval.young_s:,.0f} s, Daly {interval.daly_s:,.0f} s; planned here: "
                f"{plan.scenario.checkpoints.interval_s:,.0f} s, {percent(interval.goodput_given)})"
                f"{_hangs_on(interval.hangs_on, inputs, 'the interval')}",
            )
        )
    count = "no number of spares reaches" if spares.spares is None else f"{spares.spares} reach"
    rows.append(
        (
            "spares",
            f"{count} {100 * spares.target:.4g} %; goodput is {percent(spares.goodput)} then"
            f"{_hangs_on(spares.hangs_on, inputs)}",
        )
    )
    rows += _spares_that_pay(plan, inputs)
    rows += _way_advice(plan, inputs)
    worth = [each for each in plan.outlooks if each.saves_h is not None]
    if worth:
        most = max(worth, key=lambda each: each.saves_h or 0.0)
        rows.append(("worth most", f"{most.title}: {days(most.saves_h)} less than the previous step"))
    best = max(plan.outlooks, key=lambda each: each.goodput)
    rows.append(("highest goodput", f"{best.title}: {percent(best.goodput)}{_hangs_on(best.hangs_on, inputs)}"))
    return rows


def _spares_that_pay(plan: Plan, inputs: Inputs) -> list[tuple[str, str]]:
    best, usd = plan.cheapest_spares, inputs.usd_per_instance_hour
    if best is None or best.paid_h is None:
        return []
    if best.spares == 0:
        one = next((each for each in plan.spares_costs if each.spares == 1), None)
        if one is None or one.idle_h is None or one.saved_h is None:
            return [("spares that pay", "none")]
        idle, saved = _worth(one.idle_h, usd), _worth(one.saved_h, usd)
        return [("spares that pay", f"none: the first would idle for {idle} and save {saved}")]
    saved = "training never ends without them" if best.saved_h is None else f"save {_worth(best.saved_h, usd)}"
    return [("spares that pay", f"{best.spares}: they idle for {_worth(best.idle_h or 0.0, usd)} and {saved}")]


def _worth(instance_hours: float, usd: float | None) -> str:
    text = f"{instance_hours:,.0f} instance-hours"
    return text if usd is None else f"{text} ({dollars(instance_hours * usd)})"


def _way_advice(plan: Plan, inputs: Inputs) -> list[tuple[str, str]]:
    ways, rows = plan.ways, list[tuple[str, str]]()
    limits, cheapest, quickest = [], ways.cheapest, ways.quickest
    if ways.deadline_h is not None:
        limits.append(f"in {ways.deadline_h / 24:g} days")
    if ways.budget_usd is not None and inputs.usd_per_instance_hour is not None:
        limits.append(f"for {dollars(ways.budget_usd)}")
    elif ways.budget_usd is not None:
        rows.append((f"for {dollars(ways.budget_usd)}", inputs.price_note))
        cheapest, quickest = ways.cheapest_in_time, None
    if limits:
        rows.append((" and ".join(limits), _choice(cheapest, quickest, inputs)))
        nearest = {"cheapest in time": ways.cheapest_in_time, "quickest for it": ways.quickest_in_budget}
        rows += [(what, _way(each, inputs)) for what, each in nearest.items() if each and not cheapest]
    else:
        here = [each for each in ways.table if each.instances == inputs.instances and each.instance_hours is not None]
        best = min(here, key=lambda each: each.instance_hours or 0.0, default=None)
        if best is not None:
            rows.append(("cheapest here", _way(best, inputs)))
        if ways.fastest is not None:
            rows.append(("fastest size", f"{_way(ways.fastest, inputs)}; {IF_IT_SCALES}"))
    return rows


def _choice(cheapest: Way | None, quickest: Way | None, inputs: Inputs) -> str:
    if cheapest is None:
        return "no strategy at any size meets it"
    measure = " (the fewest instance-hours)" if inputs.usd_per_instance_hour is None else ""
    text = f"cheapest{measure} is {_way(cheapest, inputs)}"
    if quickest is not None and quickest != cheapest:
        text += f"; quickest is {_way(quickest, inputs)}"
    return f"{text}; {IF_IT_SCALES}"


def _way(way: Way, inputs: Inputs) -> str:
    cost = f"{way.instance_hours:,.0f} instance-hours" if way.cost_usd is None else dollars(way.cost_usd)
    spares = f" + {way.spares}" if way.spares else ""
    assumed = inputs.stages[way.strategy.partition("+")[0]].source == ASSUMED
    note = " (its recovery times are our assumption)" if assumed else ""
    return f"{way.title}{note} on {way.instances:,}{spares} instances: {days(way.wall_h)}, {cost}"


def _hangs_on(elasticity: Elasticity | None, inputs: Inputs, what: str = "lost time") -> str:
    if elasticity is None:
        return ""
    origin = inputs.origins.get(elasticity.input, "")
    return f"; {what} hangs most on the {elasticity.input} ({signed(elasticity)}; {origin})"


def signed(elasticity: Elasticity) -> str:
    """Such as "+0.50 % per %"."""
    return f"{elasticity.percent_per_percent:+.2f} % per %"


def _goodputs(plan: Plan) -> Table:
    return _table(plan, GOODPUT_COLUMNS, goodput_cells)


def _costs(plan: Plan) -> Table:
    return _table(plan, COST_COLUMNS, cost_cells)


def _table(plan: Plan, columns: Sequence[str], cells: Callable[[Outlook], tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("strategy", overflow="fold", min_width=14)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for each in plan.outlooks:
        table.add_row(each.title, *cells(each), style="bold" if each.strategy == plan.chosen else "")
    return table


def goodput_cells(each: Outlook) -> tuple[str, ...]:
    return (
        f"{each.spares}",
        f"{each.minutes_per_failure:,.1f}",
        percent(each.first_order_goodput),
        percent(each.goodput),
        _simulated(each),
    )


def cost_cells(each: Outlook) -> tuple[str, ...]:
    spread = "" if each.simulation is None else _spread(each.simulation.wall_h)
    if each.wall_h is None:
        return "never ends", spread, "", "", "", ""
    return (
        short(each.wall_h),
        spread,
        short(each.lost_h),
        "no price" if each.cost_usd is None else short_dollars(each.cost_usd),
        "" if each.saves_h is None else short(each.saves_h),
        "" if each.saves_usd is None else short_dollars(each.saves_usd),
    )


def _spread(wall_h: Estimate) -> str:
    return f"{wall_h.p5 / 24:,.1f} to {wall_h.p95 / 24:,.1f}"


def _simulated(each: Outlook) -> str:
    if each.simulation is None:
        return "-"
    estimate = each.simulation.goodput
    return f"{percent(estimate.mean)} ±{100 * (estimate.high - estimate.mean):.2f}"


def _comparison(compared: PlanAgainstActual) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("plan against actual", "plan", "actual", "95 % interval", "plan within it"):
        table.add_column(name, justify="left" if name == "plan against actual" else "right")
    for cells in comparison_rows(compared):
        table.add_row(*cells)
    return table


def comparison_rows(compared: PlanAgainstActual) -> list[tuple[str, ...]]:
    return [
        (
            f"{row.what} (reported by jobs)" if row.reported_by_jobs else row.what,
            number(row.plan),
            number(row.actual),
            "-" if row.low is None or row.high is None else f"{number(row.low)} to {number(row.high)}",
            {True: "yes", False: "no", None: "-"}[row.within],
        )
        for row in compared.comparisons
    ]


def _ledger(compared: PlanAgainstActual) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("where the time went", "seconds", "share"):
        table.add_column(name, justify="left" if name == "where the time went" else "right")
    for cells in ledger_rows(compared):
        table.add_row(*cells)
    return table


def ledger_rows(compared: PlanAgainstActual) -> list[tuple[str, str, str]]:
    totals = ledger_total(compared.ledgers)
    wall = sum(book.wall_ns for book in compared.ledgers)
    rows = [(account, f"{ns / 1e9:,.3f}", percent(ns / wall) if wall else "-") for account, ns in totals.items()]
    return [*rows, ("wall clock", f"{wall / 1e9:,.3f}", percent(1.0) if wall else "-")]


def _notes(inputs: Inputs) -> list[str]:
    return (
        inputs.assumptions
        if inputs.usd_per_instance_hour is None
        else [*inputs.assumptions, f"price {inputs.price_note}"]
    )


def _pairs(title: str, rows: Iterable[tuple[str, str]], *, style: str = "") -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style=style, no_wrap=True)
    table.add_column(style=style)
    table.add_row(Text(title, style="bold"), "")
    for subject, sentence in rows:
        table.add_row(Text(f"  {subject}"), Text(sentence))
    return table
