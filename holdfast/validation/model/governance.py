"""Task governance of a cluster: its policy and the quotas of teams, in AWS vocabulary."""

from dataclasses import dataclass
from typing import Annotated

from holdfast.catalog import QUOTA, QUOTA_RESOURCE, SCHEDULER, SCHEDULER_PRIORITY, Property
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quota(Item):
    """Compute of one instance type (API: ComputeQuotaResourceConfig)."""

    instance_type: Annotated[str, Property(QUOTA_RESOURCE, "InstanceType")]
    instance_count: Annotated[int | None, Property(QUOTA_RESOURCE, "Count")]
    """Whole instances. None: accelerators, vCPUs or memory instead."""
    partition: Annotated[str | None, Property(QUOTA_RESOURCE, "AcceleratorPartition.Type")] = None
    """Profile of a GPU partition: ``mig-1g.10gb``."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TeamQuota(Item):
    """Compute of a team (API: ComputeQuota)."""

    name: Annotated[str, Property(QUOTA, "ComputeQuotaTarget.TeamName")]
    weight: Annotated[int, Property(QUOTA, "ComputeQuotaTarget.FairShareWeight", 0)]
    """0: not set."""
    quota: Annotated[tuple[Quota, ...], Property(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources")]
    sharing: Annotated[str | None, Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.Strategy")] = None
    """``Lend``, ``DontLend`` or ``LendAndBorrow``."""
    borrow_limit_percent: Annotated[
        int | None, Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.BorrowLimit")
    ] = None
    borrow_limits: Annotated[
        tuple[Quota, ...], Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.AbsoluteBorrowLimits")
    ] = ()
    """Absolute limits of borrowing."""
    preemption: Annotated[str | None, Property(QUOTA, "ComputeQuotaConfig.PreemptTeamTasks")] = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PriorityClass(Item):
    name: Annotated[str, Property(SCHEDULER_PRIORITY, "Name")]
    weight: Annotated[int, Property(SCHEDULER_PRIORITY, "Weight")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Governance(Item):
    fair_share: Annotated[str | None, Property(SCHEDULER, "SchedulerConfig.FairShare")]
    """``Enabled`` or ``Disabled``. None: the default, or there is no policy."""
    priority_classes: Annotated[tuple[PriorityClass, ...], Property(SCHEDULER, "SchedulerConfig.PriorityClasses")] = ()
    teams: tuple[TeamQuota, ...]
