"""Recovery from the loss of one node: its terms, and the largest of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.catalog.goodput import RecoveryTerm
from holdfast.planner.layouts.figures import Figure
from holdfast.planner.layouts.sizes import Layout

LEAST_S = 0.5
"""Our assumption: of a term that grows with the number of ranks, in a job of a few."""


@dataclass(frozen=True, kw_only=True)
class Term:
    name: str
    low_s: float
    high_s: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """From the loss of a node to the next step, with a spare node; at most one step that drains comes on top."""

    way: str
    """Transport of the state: TCP or EFA."""
    copy: Term
    low_s: float
    high_s: float
    largest: str
    """Name of the largest term."""
    gpu_hours_low: float
    gpu_hours_high: float


def common_terms(rows: Sequence[RecoveryTerm], layout: Layout) -> tuple[Term, ...]:
    """Terms that do not depend on the state."""
    return tuple(
        Term(
            name=row.name,
            low_s=_scaled(row.low_s, row.at_ranks, layout.ranks),
            high_s=_scaled(row.high_s, row.at_ranks, layout.ranks),
            source=f"{row.source}{_proportion(row)}",
        )
        for row in rows
    )


def recoveries(common: Sequence[Term], layout: Layout, found: Mapping[str, Figure]) -> tuple[Recovery, ...]:
    address_s, efa_s = found["address_s"].value, found["efa_s"].value
    by_tcp = Term(
        name="copy the state by TCP",
        low_s=max(found["placed_flow_s"].value, address_s),
        high_s=max(found["flow_s"].value, address_s),
        source="the slower of one flow and one address",
    )
    by_efa = Term(
        name="copy the state by EFA", low_s=efa_s, high_s=efa_s, source="not built: the runtime copies by TCP"
    )
    return tuple(_recovery(way, common, copy, layout.ranks) for way, copy in (("TCP", by_tcp), ("EFA", by_efa)))


def _scaled(seconds: float, at_ranks: int, ranks: int) -> float:
    return max(LEAST_S, seconds * ranks / at_ranks) if at_ranks else seconds


def _proportion(row: RecoveryTerm) -> str:
    return f"; {row.low_s:g} to {row.high_s:g} s at {row.at_ranks:,} ranks, in proportion" if row.at_ranks else ""


def _recovery(way: str, common: Sequence[Term], copy: Term, ranks: int) -> Recovery:
    terms = (*common, copy)
    low, high = sum(term.low_s for term in terms), sum(term.high_s for term in terms)
    return Recovery(
        way=way,
        copy=copy,
        low_s=low,
        high_s=high,
        largest=max(terms, key=lambda term: term.high_s).name,
        gpu_hours_low=low * ranks / 3600,
        gpu_hours_high=high * ranks / 3600,
    )
