"""
Cost of an incident in accelerator hours and dollars. Pure: types and prices are arguments.

Counted is the time that the broken instance was out of service, as the cluster reports it. The job's report is
separate, since every user of a node can write it: standstill of its other instances, and steps that were lost. A
figure is None if a time, type or price is unknown; the first also while the incident is open.

Time of an instance in several incidents counts once, for the first of them, so that costs can be summed; no job
report reduces what the cluster reports.
"""

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.catalog import instance_types
from holdfast.catalog.goodput import prices
from holdfast.cli.terminal import CommandError
from holdfast_common import Incident

LIST_PRICE = "ec2-on-demand"
Span = tuple[int, int]
"""From one time to another, in nanoseconds."""
ByNode = Mapping[str, float] | None
"""Hours of each instance; None where they are not known."""


@dataclass(frozen=True, kw_only=True)
class Hours:
    own: ByNode
    """Of the broken instance."""
    reported: ByNode
    """Of the other instances of the job, as it reports them."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """Dollars per instance-hour by instance type, and their source."""

    by_type: Mapping[str, float] = field(default_factory=dict)
    for_all: float | None = None
    note: str = ""

    @staticmethod
    def of(text: str, *, region: str) -> "Price":
        """Parse an amount, or an offer of the price list. Raises: CommandError: neither."""
        rows = prices()
        offers = sorted({row.offer for row in rows})
        if text in offers:
            offered = [row for row in rows if row.offer == text]
            near = [row for row in offered if row.region == region]
            by_type = {row.instance_type: row.usd_per_instance_hour for row in [*offered, *near]}
            return Price(by_type=by_type, note=f"{text}: {offered[0].source}; {offered[0].note}".strip("; "))
        try:
            usd = float(text)
        except ValueError:
            usd = -1.0
        if not 0 <= usd < float("inf"):
            raise CommandError(
                f"got --price {text!r}; allowed: dollars per instance-hour, 0 or more, or one of {', '.join(offers)}"
            )
        return Price(for_all=usd, note=f"${usd:,.2f} per instance-hour: given")

    def usd_per_hour(self, instance_type: str) -> float | None:
        return self.for_all if self.for_all is not None else self.by_type.get(instance_type)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Instance types of a cluster as far as known, and their prices."""

    type_of_node: Mapping[str, str] = field(default_factory=dict)
    type_of_group: Mapping[str, str] = field(default_factory=dict)
    price: Price = Price()

    def with_groups_of(self, groups: Mapping[str, str]) -> "Fleet":
        known = {node: self.type_of_group[group] for node, group in groups.items() if group in self.type_of_group}
        return Fleet(type_of_node={**known, **self.type_of_node}, type_of_group=self.type_of_group, price=self.price)

    def accelerators(self, node: str) -> int | None:
        known = instance_types().get(self.type_of_node.get(node, ""))
        return None if known is None else known.accelerators

    def usd_per_hour(self, node: str) -> float | None:
        return self.price.usd_per_hour(self.type_of_node.get(node, ""))


def gpu_hours(hours: ByNode, fleet: Fleet) -> float | None:
    """GPUs or Trainium devices, times hours."""
    return _weighted(hours, fleet.accelerators)


def cost_usd(hours: ByNode, fleet: Fleet) -> float | None:
    return _weighted(hours, fleet.usd_per_hour)


def hours_of(incidents: Sequence[Incident]) -> list[Hours]:
    order = sorted(range(len(incidents)), key=lambda place: (incidents[place].start_ns, incidents[place].id))
    counted: dict[str, _CountedTime] = {}
    own = {place: _counted_once(_out_of_service(incidents[place]), counted) for place in order}
    reported = {place: _counted_once(_stood_still(incidents[place]), counted) for place in order}
    return [Hours(own=own[place], reported=reported[place]) for place in range(len(incidents))]


def _out_of_service(incident: Incident) -> list[tuple[str, Span]] | None:
    if incident.is_open:
        return None
    if incident.needs_no_repair or incident.is_of_process:
        return []
    begun_ns = incident.out_ns if incident.handed_over_ns is None else incident.handed_over_ns
    end_ns = incident.restored_ns if incident.restored_ns is not None else incident.removed_ns
    if begun_ns is None or end_ns is None:
        return None
    return [(incident.node, (begun_ns, max(begun_ns, end_ns)))]


def _stood_still(incident: Incident) -> list[tuple[str, Span]] | None:
    if not incident.job:
        return []
    if incident.stopped_s is None or incident.thrown_away_s is None or not incident.job_nodes:
        return None
    end_ns = incident.resumed_ns if incident.resumed_ns is not None else incident.start_ns
    span = (end_ns - round((incident.stopped_s + incident.thrown_away_s) * 1e9), end_ns)
    return [(node, span) for node in incident.job_nodes if node != incident.node or incident.is_of_process]


def _counted_once(spans: list[tuple[str, Span]] | None, counted: "dict[str, _CountedTime]") -> ByNode:
    if spans is None:
        return None
    found: dict[str, float] = {}
    for node, span in spans:
        found[node] = found.get(node, 0.0) + counted.setdefault(node, _CountedTime()).add(*span) / 3.6e12
    return found


class _CountedTime:
    """Time of one instance that is counted: spans without overlap, in their order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> int:
        """Add a span, and return its nanoseconds that were in none before."""
        if end <= start:
            return 0
        first, last = bisect.bisect_left(self._ends, start), bisect.bisect_right(self._starts, end)
        known = [*zip(self._starts[first:last], self._ends[first:last], strict=True)]
        self._starts[first:last] = [min([start, *self._starts[first:last]])]
        self._ends[first:last] = [max([end, *self._ends[first:last]])]
        return end - start - sum(min(ended, end) - max(begun, start) for begun, ended in known)


def _weighted(hours: ByNode, weight_of: Callable[[str], float | None]) -> float | None:
    if hours is None:
        return None
    total = 0.0
    for node, spent in hours.items():
        weight = weight_of(node)
        if spent and weight is None:
            return None
        total += spent * (weight or 0.0)
    return total
