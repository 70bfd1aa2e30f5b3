"""
What an incident took, in accelerator hours and dollars. Pure: types and prices are given.

Counted are the instances of the job for as long as it stood still, and for as long as the steps had taken that were
thrown away; and the broken instance from then on until it was in service again. It is None while the incident goes on,
and wherever one of these is unknown, or the type or price of one of the instances.

Time of an instance that several incidents share is counted once, in the one that began first, so that what incidents
took can be added up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.catalog import instance_types
from holdfast.catalog.goodput import prices
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, Incident

LIST_PRICE = "ec2-on-demand"
Span = tuple[int, int]
"""From one time to another, in nanoseconds."""
Hours = Mapping[str, float] | None


@dataclass(frozen=True, kw_only=True)
class Price:
    """Dollars per instance-hour by instance type, and where they are from."""

    by_type: Mapping[str, float] = field(default_factory=dict)
    for_all: float | None = None
    note: str = ""

    @staticmethod
    def of(text: str, *, region: str) -> "Price":
        """
        From an amount, or the name of an offer of the price list.

        Raises:
            CommandError: it is neither.
        """
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
    """The instance types of a cluster, as far as they are known, and what they cost."""

    type_of_node: Mapping[str, str] = field(default_factory=dict)
    type_of_group: Mapping[str, str] = field(default_factory=dict)
    price: Price = Price()

    def with_nodes_of(self, events: Iterable[Event]) -> "Fleet":
        """The same, with the instances of the past: their events say which group each was in."""
        known = {
            event.node: self.type_of_group[group]
            for event in events
            if event.node and isinstance(group := event.detail.get("group"), str) and group in self.type_of_group
        }
        return Fleet(type_of_node={**known, **self.type_of_node}, type_of_group=self.type_of_group, price=self.price)

    def accelerators(self, node: str) -> int | None:
        known = instance_types().get(self.type_of_node.get(node, ""))
        return None if known is None else known.accelerators

    def usd_per_hour(self, node: str) -> float | None:
        return self.price.usd_per_hour(self.type_of_node.get(node, ""))


def gpu_hours(hours: Hours, fleet: Fleet) -> float | None:
    """GPUs or Trainium devices, times hours."""
    return None if hours is None else _weighted(hours, {node: fleet.accelerators(node) for node in hours})


def cost_usd(hours: Hours, fleet: Fleet) -> float | None:
    return None if hours is None else _weighted(hours, {node: fleet.usd_per_hour(node) for node in hours})


def instance_hours(incidents: Sequence[Incident]) -> list[Hours]:
    """For each incident: hours that each instance did nothing useful because of it; None where they are not known."""
    counted: dict[str, list[Span]] = {}
    found: dict[int, Hours] = {}
    for place, incident in sorted(enumerate(incidents), key=lambda one: (one[1].start_ns, one[1].id)):
        spans = _spans(incident)
        own = {node: 0.0 for node, _ in spans or ()}
        for node, span in spans or ():
            fresh = _without(span, counted.get(node, ()))
            own[node] += sum(end - start for start, end in fresh) / 3.6e12
            counted.setdefault(node, []).extend(fresh)
        found[place] = None if spans is None else own
    return [found[place] for place in range(len(incidents))]


def _spans(incident: Incident) -> list[tuple[str, Span]] | None:
    """When which instance did nothing useful; None where that is not known."""
    if incident.is_open:
        return None
    found: list[tuple[str, Span]] = []
    if incident.resumed_ns is not None:
        if incident.stopped_s is None or incident.thrown_away_s is None or not incident.job_nodes:
            return None
        stopped_ns = round((incident.stopped_s + incident.thrown_away_s) * 1e9)
        span = (incident.resumed_ns - stopped_ns, incident.resumed_ns)
        found += [(node, span) for node in incident.job_nodes]
    elif incident.job and incident.restored_ns is not None:
        return None
    out = _out_of_service(incident)
    return None if out is None else [*found, (incident.node, out)]


def _out_of_service(incident: Incident) -> Span | None:
    """When the broken instance was of no use beyond the time that its job stood still."""
    if incident.is_of_nobody or incident.is_of_process:
        return (incident.start_ns, incident.start_ns)
    end_ns = incident.restored_ns if incident.restored_ns is not None else incident.removed_ns
    begun_ns = incident.resumed_ns if incident.resumed_ns is not None else incident.out_ns
    if end_ns is None or begun_ns is None:
        return None
    return (begun_ns, max(begun_ns, end_ns))


def _without(span: Span, counted: Iterable[Span]) -> list[Span]:
    """What of a span is in none of the others."""
    left = [span]
    for start, end in counted:
        left = [
            part
            for begun, ended in left
            for part in ((begun, min(ended, start)), (max(begun, end), ended))
            if part[0] < part[1]
        ]
    return left


def _weighted(hours: Mapping[str, float], weights: Mapping[str, float | int | None]) -> float | None:
    total = 0.0
    for node, spent in hours.items():
        weight = weights[node]
        if spent and weight is None:
            return None
        total += spent * (weight or 0.0)
    return total
