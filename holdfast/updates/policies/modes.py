"""Lifecycle modes of groups before and after a change."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.config import LifecycleMode, mode_of
from holdfast.updates.policies.effects import Edit


def mode(environment: Mapping[str, Any], group: Mapping[str, Any]) -> LifecycleMode:
    scripts = group.get("life_cycle_config") or environment["lifecycle"].get("existing")
    return mode_of(
        group=group["lifecycle_mode"],
        scripts=None if scripts is None else "custom" if scripts["on_create"] else "extension",
        environment=environment["lifecycle"]["mode"],
        on_eks=environment["eks"] is not None,
        continuous=environment["cluster"]["node_provisioning_mode"] == "Continuous",
    )


def changes_modes(edit: Edit) -> bool:
    """Return True if a remaining group gets another mode."""
    return any(old != new for old, new in _pairs(edit))


def leaves_custom(edit: Edit) -> bool:
    return any(old == "custom" != new for old, new in _pairs(edit))


def _pairs(edit: Edit) -> Iterator[tuple[LifecycleMode, LifecycleMode]]:
    """The modes before and after, of the group that the edit is in, or else of all groups that stay."""
    if "lifecycle_mode" in edit.before:
        yield mode(edit.deployed, edit.before), mode(edit.desired, edit.after)
        return
    before = {group["name"]: group for group in edit.deployed["cluster"]["instance_groups"]}
    for group in edit.desired["cluster"]["instance_groups"]:
        if group["name"] in before:
            yield mode(edit.deployed, before[group["name"]]), mode(edit.desired, group)
