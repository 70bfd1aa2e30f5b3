"""Task governance of a cluster: its policy and the quotas of teams, in AWS vocabulary."""

from dataclasses import dataclass

from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quota(Item):
    """Compute of one instance type (API: ComputeQuotaResourceConfig)."""

    instance_type: str
    count: int | None
    """Whole instances. None: accelerators, vCPUs or memory instead."""
    partition: str | None = None
    """Profile of a GPU partition: ``mig-1g.10gb``."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TeamQuota(Item):
    """Compute of a team (API: ComputeQuota)."""

    team: str
    weight: int
    """0: not set."""
    quotas: tuple[Quota, ...]
    sharing: str | None = None
    """``Lend``, ``DontLend`` or ``LendAndBorrow``."""
    borrow_limit: int | None = None
    borrow_limits: tuple[Quota, ...] = ()
    """Absolute limits of borrowing."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PriorityClass(Item):
    name: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Governance(Item):
    fair_share: bool | None
    """None: the source makes no policy."""
    priority_classes: tuple[PriorityClass, ...] = ()
    teams: tuple[TeamQuota, ...]
