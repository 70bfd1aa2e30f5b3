"""Monthly costs of an environment beside its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.catalog import ENDPOINTS, KEPT_VERSIONS_DAYS
from holdfast.catalog.goodput import StandingPrices
from holdfast.config import Environment

HOURS_PER_MONTH = 730
"""As AWS's price pages count them."""


@dataclass(frozen=True, kw_only=True)
class StandingCost:
    what: str
    usd_per_month: float | None
    """None: it depends on use, or has no price here."""
    price: str


def standing_costs(environment: Environment, prices: StandingPrices) -> tuple[StandingCost, ...]:
    """Costs of file systems, network, control plane and key, then prices of what the defaults keep."""
    return (*_storage(environment, prices.usd), *_network(environment, prices.usd), *_use(environment, prices.usd))


def _storage(environment: Environment, usd: dict[str, float]) -> Iterator[StandingCost]:
    lustre, home = environment.storage.lustre, environment.storage.home
    if lustre is not None and lustre.existing is None and lustre.capacity_gib is not None:
        throughput = lustre.throughput_mbps_per_tib
        rate = usd.get(f"fsx-lustre-{throughput}-gib-month")
        yield StandingCost(
            what=f"FSx for Lustre, {lustre.capacity_gib:,} GiB at {throughput} MB/s per TiB",
            usd_per_month=None if rate is None else lustre.capacity_gib * rate,
            price="no price here" if rate is None else f"{_rate(rate)} per GiB",
        )
    if home is not None and home.existing is None and home.capacity_gib is not None:
        space, throughput_usd = usd["fsx-openzfs-gib-month"], usd["fsx-openzfs-mbps-month"]
        yield StandingCost(
            what=f"FSx for OpenZFS, {home.capacity_gib:,} GiB at {home.throughput_mbps} MB/s",
            usd_per_month=home.capacity_gib * space + home.throughput_mbps * throughput_usd,
            price=f"{_rate(space)} per GiB, {_rate(throughput_usd)} per MB/s",
        )


def _network(environment: Environment, usd: dict[str, float]) -> Iterator[StandingCost]:
    if environment.network.existing is None:
        if environment.network.egress == "nat":
            hour = usd["nat-gateway-hour"]
            price = f"{_rate(hour)} an hour, and {_rate(usd['nat-gateway-gb'])} per GB through it"
            yield StandingCost(what="NAT gateway", usd_per_month=HOURS_PER_MONTH * hour, price=price)
        else:
            count, hour = len(ENDPOINTS[environment.orchestrator]), usd["interface-endpoint-hour"]
            price = f"{_rate(hour)} an hour each; MLflow, Prometheus, EFA to FSx and Slurm's accounting have more"
            yield StandingCost(
                what=f"{count} interface endpoints", usd_per_month=count * HOURS_PER_MONTH * hour, price=price
            )
    if environment.eks is not None and environment.eks.existing is None:
        hour = usd["eks-cluster-hour"]
        yield StandingCost(
            what="EKS control plane", usd_per_month=HOURS_PER_MONTH * hour, price=f"{_rate(hour)} an hour"
        )
    accounting = environment.slurm.accounting if environment.slurm is not None else None
    if accounting is not None and accounting.create:
        yield StandingCost(what="RDS for Slurm's accounting", usd_per_month=None, price="no price here")
    if environment.encryption.kms_key == "create":
        yield StandingCost(
            what="KMS key",
            usd_per_month=usd["kms-key-month"],
            price=f"and {_rate(10_000 * usd['kms-request'])} per 10,000 requests",
        )


def _use(environment: Environment, usd: dict[str, float]) -> Iterator[StandingCost]:
    days = environment.observability.log_retention_days
    collected, stored = _rate(usd["logs-collected-gb"]), _rate(usd["logs-stored-gb-month"])
    kept = f"{collected} per GB, then {stored} per GB and month, {days} days"
    if environment.network.existing is None and environment.network.flow_logs:
        yield StandingCost(what="flow logs", usd_per_month=None, price=kept)
    yield StandingCost(what="logs of nodes and events", usd_per_month=None, price=kept)
    if environment.storage.data is None and environment.storage.on_delete == "Retain":
        gigabyte, size_gb = usd["s3-standard-gb-month"], 1000
        yield StandingCost(
            what=f"old versions in the data bucket, {KEPT_VERSIONS_DAYS} days",
            usd_per_month=None,
            price=f"{_rate(gigabyte)} per GB; 1 TB overwritten daily: ${size_gb * KEPT_VERSIONS_DAYS * gigabyte:,.0f}",
        )


def _rate(usd: float) -> str:
    return f"${usd:.2f}" if round(usd, 2) == usd else f"${usd:g}"
