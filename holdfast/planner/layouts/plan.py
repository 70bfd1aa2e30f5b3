from dataclasses import dataclass

from holdfast.catalog.goodput import LayoutFacts, PublishedRecovery, RecoveryStages, Sourced
from holdfast.planner.layouts.figures import Figure, figures, refusal
from holdfast.planner.layouts.recovery import Recovery, Term, common_terms, recoveries
from holdfast.planner.layouts.sizes import Hardware, Layout
from holdfast.planner.model import PlanError
from holdfast_common.placement import Spot, keepers, needs_snapshots, survival


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Other places of the state of rank 0, by the rules of the runtime; other ranks have theirs in the same way."""

    twins: int
    """Ranks with the same state."""
    twin_nodes: int
    """Nodes that they are on, its own included."""
    snapshots: bool
    """True if snapshots are taken by default: twins do not cover the loss of a node."""
    keeper: int
    """Rank that keeps its snapshots; -1 for none."""
    keeper_node: int
    survives: str
    redone: str
    """Steps that are done again after the loss of a node."""


@dataclass(frozen=True, kw_only=True)
class LayoutPlan:
    model: str
    parameters: Sourced
    layout: str
    shards: int
    copies_of_each: int
    ranks: int
    nodes: int
    instance_type: str
    figures: dict[str, Figure]
    copies: Copies
    terms: tuple[Term, ...]
    """Of a recovery, without the copy of the state."""
    recoveries: tuple[Recovery, ...]
    goal_s: float
    published: tuple[PublishedRecovery, ...]


def plan_layout(
    *,
    model: str,
    parameters: Sourced,
    name: str,
    layout: Layout,
    hardware: Hardware,
    facts: LayoutFacts,
    checkpointless: RecoveryStages,
    instances: int | None = None,
) -> LayoutPlan:
    """
    Plan a layout.

    Args:
        checkpointless: AWS's published recoveries, on instances of 8 GPUs.
        instances: Default: as many as it needs

    Raises:
        PlanError: it does not fit the instances.
    """
    nodes = _nodes(name, layout, hardware, instances)
    found = figures(parameters.value, layout, hardware, facts.values)
    copies = _copies(layout, hardware)
    if problem := refusal(found, hardware, facts.values, snapshots=copies.snapshots):
        raise PlanError(problem)
    common = common_terms(facts.recovery, layout)
    return LayoutPlan(
        model=model,
        parameters=parameters,
        layout=name,
        shards=layout.shards,
        copies_of_each=layout.copies,
        ranks=layout.ranks,
        nodes=nodes,
        instance_type=hardware.instance_type,
        figures=found,
        copies=copies,
        terms=common,
        recoveries=recoveries(common, layout, found),
        goal_s=facts.goal_s,
        published=(*_aws(checkpointless), *facts.published),
    )


def _aws(stages: RecoveryStages) -> tuple[PublishedRecovery, ...]:
    return tuple(
        PublishedRecovery(
            name=f"AWS, {stages.title}",
            accelerators=8 * row.instances,
            recovery_s=row.detect_s + row.resume_s,
            source=stages.source,
            date=stages.date,
        )
        for row in stages.measured
    )


def _nodes(name: str, layout: Layout, hardware: Hardware, instances: int | None) -> int:
    size, ranks = hardware.accelerators, layout.ranks
    if ranks > size and ranks % size:
        raise PlanError(
            f"got --layout {name}, {ranks:,} ranks; allowed: a multiple of the {size} GPUs of "
            f"{hardware.instance_type}; use {ranks // size * size:,} or {-(-ranks // size) * size:,} ranks"
        )
    nodes = -(-ranks // size)
    if instances is not None and instances != nodes:
        raise PlanError(
            f"got {instances:,} instances for --layout {name}; allowed: {nodes:,} ({ranks:,} ranks, {size} GPUs each); "
            f"give --instances {nodes}, or another layout"
        )
    return nodes


def _copies(layout: Layout, hardware: Hardware) -> Copies:
    spots = [Spot(rank // hardware.accelerators) for rank in range(layout.ranks)]
    snapshots = needs_snapshots(spots, alike=layout.alike)
    kept = keepers(spots, alike=layout.alike) if snapshots else None
    keeper = -1 if kept is None else kept.of[0]
    return Copies(
        twins=layout.copies,
        twin_nodes=len({spots[rank].node for rank in layout.alike[0]}),
        snapshots=snapshots,
        keeper=keeper,
        keeper_node=-1 if keeper < 0 else spots[keeper].node,
        survives=str(survival(spots, alike=layout.alike, kept=kept)),
        redone=_redone(nodes=spots[-1].node + 1, snapshots=snapshots),
    )


def _redone(*, nodes: int, snapshots: bool) -> str:
    if nodes == 1:
        return "all since the last checkpoint: there is one node"
    if not snapshots:
        return "at most the running step"
    return "all since the newest safe snapshot: at most k, or 2k while one is on its way, with snapshot_every=k"
