"""Plan of a layout on a terminal."""

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.planner import Copies, LayoutPlan


def render_layout(plan: LayoutPlan) -> RenderableType:
    parts: list[RenderableType] = [
        Rule(Text(f"{plan.model} as {plan.layout}", style="bold"), style="dim"),
        Text(headline(plan)),
        _figures(plan),
        _recovery(plan),
        Text("\n".join(conclusions(plan))),
    ]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def headline(plan: LayoutPlan) -> str:
    return (
        f"{plan.parameters.value:,.4g} parameters ({plan.parameters.source}) in {plan.shards:,} shards, "
        f"{plan.copies_of_each:,} of each: {plan.ranks:,} ranks on {plan.nodes:,} {plan.instance_type}."
    )


def conclusions(plan: LayoutPlan) -> list[str]:
    copies = plan.copies
    lines = [
        f"copies: {copies.twins:,} of each shard, nodes with one: {copies.twin_nodes:,}; {_snapshots(copies)}",
        f"losses: {copies.survives}",
        f"redone after the loss of a node: {copies.redone}",
    ]
    for each in plan.recoveries:
        missed = f"; over {plan.goal_s:g} s because of: {each.largest}" if each.high_s > plan.goal_s else ""
        lines.append(
            f"one lost node, {each.way}: {_span(each.low_s, each.high_s)} s and at most one step that drains, "
            f"{_span(each.gpu_hours_low, each.gpu_hours_high)} GPU hours{missed}"
        )
    return lines + [f"published: {row.name}, {row.accelerators:,} GPUs: {row.recovery_s:g} s" for row in plan.published]


def _snapshots(copies: Copies) -> str:
    if not copies.snapshots:
        return "no snapshots without snapshot_every"
    if copies.keeper < 0:
        return "no other rank can keep a snapshot"
    return f"rank {copies.keeper} on node {copies.keeper_node} keeps the snapshots of rank 0"


def _figures(plan: LayoutPlan) -> Table:
    table = _table("per rank and node", "", "formula", "source")
    for each in plan.figures.values():
        table.add_row(each.title, f"{each.value:,.3g} {each.unit}", each.formula, each.source)
    return table


def _recovery(plan: LayoutPlan) -> Table:
    table = _table("recovery from a lost node", "s", "source")
    for term in (*plan.terms, *(each.copy for each in plan.recoveries)):
        table.add_row(term.name, _span(term.low_s, term.high_s), term.source)
    for each in plan.recoveries:
        table.add_row(f"sum with {each.way}", _span(each.low_s, each.high_s), "", style="bold")
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number == 1 else "left", overflow="fold")
    return table


def _span(low: float, high: float) -> str:
    return f"{low:,.3g}" if low == high else f"{low:,.3g} to {high:,.3g}"
