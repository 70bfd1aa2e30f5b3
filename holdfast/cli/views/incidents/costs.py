"""
What an incident took, in accelerator hours and dollars. Pure: types and prices are given.

Counted are the instances of the job for as long as it stood still, and for as long as the steps had taken that were
thrown away; and the broken instance from then on until it was in service again. It is None while the incident goes on,
and wherever one of these is unknown, or the type or price of one of the instances.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.catalog import instance_types
from holdfast.catalog.goodput import prices
from holdfast.cli.terminal import CommandError
from holdfast_common import Incident

LIST_PRICE = "ec2-on-demand"


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

    def with_groups_of(self, groups: Mapping[str, str]) -> "Fleet":
        """The same, with the instances of the past, by the group in which each was."""
        known = {node: self.type_of_group[group] for node, group in groups.items() if group in self.type_of_group}
        return Fleet(type_of_node={**known, **self.type_of_node}, type_of_group=self.type_of_group, price=self.price)

    def accelerators(self, node: str) -> int | None:
        known = instance_types().get(self.type_of_node.get(node, ""))
        return None if known is None else known.accelerators

    def usd_per_hour(self, node: str) -> float | None:
        return self.price.usd_per_hour(self.type_of_node.get(node, ""))


def gpu_hours(incident: Incident, fleet: Fleet) -> float | None:
    """GPUs or Trainium devices, times hours."""
    return _weighted(instance_hours(incident), {node: fleet.accelerators(node) for node in _nodes(incident)})


def cost_usd(incident: Incident, fleet: Fleet) -> float | None:
    return _weighted(instance_hours(incident), {node: fleet.usd_per_hour(node) for node in _nodes(incident)})


def instance_hours(incident: Incident) -> Mapping[str, float] | None:
    """Hours that each instance did nothing useful because of the incident; None where they are not known."""
    if incident.is_open:
        return None
    hours = dict.fromkeys(_nodes(incident), 0.0)
    if incident.resumed_ns is not None:
        if incident.stopped_s is None or incident.thrown_away_s is None or not incident.job_nodes:
            return None
        for node in incident.job_nodes:
            hours[node] += (incident.stopped_s + incident.thrown_away_s) / 3600
    elif incident.job and incident.restored_ns is not None:
        return None
    out_s = _out_of_service_s(incident)
    if out_s is None:
        return None
    hours[incident.node] += out_s / 3600
    return hours


def _out_of_service_s(incident: Incident) -> float | None:
    """How long the broken instance was of no use beyond the time that its job stood still."""
    end_ns = incident.restored_ns if incident.restored_ns is not None else incident.removed_ns
    if incident.is_of_nobody or incident.is_of_process:
        return 0.0
    starts = [time for time in (incident.resumed_ns, incident.out_ns) if time is not None]
    if end_ns is None or not starts:
        return None
    begun_ns = incident.resumed_ns if incident.resumed_ns is not None else starts[0]
    return max(0.0, (end_ns - begun_ns) / 1e9)


def _nodes(incident: Incident) -> list[str]:
    return sorted({incident.node, *incident.job_nodes})


def _weighted(hours: Mapping[str, float] | None, weights: Mapping[str, float | int | None]) -> float | None:
    if hours is None:
        return None
    total = 0.0
    for node, spent in hours.items():
        weight = weights[node]
        if spent and weight is None:
            return None
        total += spent * (weight or 0.0)
    return total
