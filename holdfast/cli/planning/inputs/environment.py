from holdfast.catalog import InstanceType, instance_types
from holdfast.config import Environment, InstanceGroup
from holdfast.planner import PlanError
from holdfast_common import closest_word


def training_group(environment: Environment, name: str | None) -> InstanceGroup:
    """Return the named group, or the one with the most accelerators. Raises: PlanError: no such group."""
    groups = environment.cluster.instance_groups
    if name is not None:
        for group in groups:
            if group.name == name:
                return group
        raise PlanError(f"got --group {name}; allowed: {', '.join(each.name for each in groups)}")
    known = instance_types()

    def accelerators(group: InstanceGroup) -> int:
        kind = known.get(type_of(group) or "")
        return group.instance_count * (kind.accelerators if kind else 0)

    return max(groups, key=lambda group: (accelerators(group), group.instance_count))


def type_of(group: InstanceGroup) -> str | None:
    return next(iter(group.types), None)


def kind_of(name: str) -> InstanceType:
    """Return an instance type of HyperPod. Raises: PlanError: no such type."""
    kind = instance_types().get(name)
    if kind is None:
        close = closest_word(name, instance_types())
        raise PlanError(
            f"there is no instance type '{name}' in HyperPod; allowed: "
            f"{close or 'the types of the HyperPod documentation, with the prefix ml.'}"
        )
    return kind
