"""What a plan takes from an environment; the model of the environment file has it."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.catalog import instance_types
from holdfast.planner.model import PlanError


class PlannedGroup(Protocol):
    """Instances of one purpose."""

    @property
    def name(self) -> str: ...
    @property
    def instance_count(self) -> int: ...
    @property
    def spare_count(self) -> int: ...
    @property
    def types(self) -> Sequence[str]: ...


class PlannedCluster(Protocol):
    """The groups of a cluster."""

    @property
    def instance_groups(self) -> Sequence[PlannedGroup]: ...


class ExpectedGoodput(Protocol):
    """What the environment asks for; None where nothing."""

    @property
    def target_percent(self) -> float | None: ...
    @property
    def checkpoint_interval_s(self) -> float | None: ...


class PlannedEnvironment(Protocol):
    """An environment."""

    @property
    def name(self) -> str: ...
    @property
    def cluster(self) -> PlannedCluster: ...
    @property
    def goodput(self) -> ExpectedGoodput: ...


def training_group(environment: PlannedEnvironment, name: str | None) -> PlannedGroup:
    """The group that is named, or the one with the most accelerators."""
    groups = environment.cluster.instance_groups
    if name is not None:
        for group in groups:
            if group.name == name:
                return group
        raise PlanError(f"there is no instance group '{name}'; allowed: {', '.join(each.name for each in groups)}")
    known = instance_types()

    def accelerators(group: PlannedGroup) -> int:
        kind = known.get(type_of(group) or "")
        return group.instance_count * (kind.accelerators if kind else 0)

    return max(groups, key=lambda group: (accelerators(group), group.instance_count))


def type_of(group: PlannedGroup) -> str | None:
    """The first of the types that a group takes."""
    return next(iter(group.types), None)
