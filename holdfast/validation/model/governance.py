"""Task governance of a cluster: its policy and the quotas of teams, in AWS vocabulary."""

from dataclasses import dataclass
from typing import Annotated

from holdfast.catalog import QUOTA, QUOTA_RESOURCE, SCHEDULER, SCHEDULER_PRIORITY, Property
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quota(Item):
    """Compute of one instance type (API: ComputeQuotaResourceConfig)."""

    instance_type: Annotated[str, Property(QUOTA_RESOURCE, "InstanceType")]
    count: Annotated[int | None, Property(QUOTA_RESOURCE, "Count")]
    """Whole instances. None: accelerators, vCPUs or memory instead."""
    accelerators: Annotated[int | None, Property(QUOTA_RESOURCE, "Accelerators")] = None
    partition: Annotated[str | None, Property(QUOTA_RESOURCE, "AcceleratorPartition.Type")] = None
    """Profile of a GPU partition: ``mig-1g.10gb``."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TeamQuota(Item):
    """Compute of a team (API: ComputeQuota)."""

    team: Annotated[str, Property(QUOTA, "ComputeQuotaTarget.TeamName")]
    weight: Annotated[int, Property(QUOTA, "ComputeQuotaTarget.FairShareWeight", 0)]
    """0: not set."""
    quotas: Annotated[tuple[Quota, ...], Property(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources")]
    sharing: Annotated[str | None, Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.Strategy")] = None
    """``Lend``, ``DontLend`` or ``LendAndBorrow``."""
    borrow_limit: Annotated[int | None, Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.BorrowLimit")] = None
    borrow_limits: Annotated[
        tuple[Quota, ...], Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.AbsoluteBorrowLimits")
    ] = ()
    """Absolute limits of borrowing."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PriorityClass(Item):
    name: Annotated[str, Property(SCHEDULER_PRIORITY, "Name")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Governance(Item):
    fair_share: Annotated[bool | None, Property(SCHEDULER, "SchedulerConfig.FairShare")]
    """None: the source makes no policy."""
    priority_classes: Annotated[tuple[PriorityClass, ...], Property(SCHEDULER, "SchedulerConfig.PriorityClasses")] = ()
    teams: tuple[TeamQuota, ...]
