from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.catalog import Property
from holdfast.config import Environment
from holdfast.updates.policies import (
    CLUSTER,
    EXISTING,
    GROUPS,
    HEALTH,
    HOLDFAST,
    IDENTITY,
    NETWORK,
    NODES,
    OBSERVABILITY,
    ORCHESTRATORS,
    STORAGE,
    Case,
    Edit,
    Effect,
    Policy,
)
from holdfast.updates.schema import becomes, completed, differences

REGISTRY = "CloudFormation registry: none of the createOnlyProperties of"
_WRITTEN: tuple[Policy, ...] = (
    *IDENTITY,
    *NETWORK,
    *CLUSTER,
    *GROUPS,
    *ORCHESTRATORS,
    *STORAGE,
    *NODES,
    *OBSERVABILITY,
    *HEALTH,
    *EXISTING,
    *HOLDFAST,
)


def with_default_policies(written: Sequence[Policy], properties: Mapping[str, Property]) -> tuple[Policy, ...]:
    """
    Add a policy for each setting without one that maps to one property of a resource.

    CloudFormation's registry states whether a property changes in place, and a test compares. It states nothing about
    structures, such as instance groups: their settings need their own policies.

    Args:
        properties: By the paths of their settings.
    """
    named = {setting for policy in written for setting in policy.settings}
    plain = (each for each in properties.items() if not each[1].structure)
    return *written, *(_default_policy(*each) for each in plain if each[0] not in named)


def _default_policy(setting: str, becomes: Property) -> Policy:
    return Policy(
        settings=(setting,),
        effect=Effect.IN_PLACE,
        reason=f"CloudFormation changes {becomes.name} of what is there",
        source=f"{REGISTRY} {becomes.resource}",
    )


POLICIES = with_default_policies(_WRITTEN, becomes())
_BY_SETTING = {setting: policy for policy in POLICIES for setting in policy.settings}


@dataclass(frozen=True, kw_only=True)
class Change:
    path: str
    """Such as ``cluster.instance_groups.workers.instance_count``; a group that comes or goes is a path of its own."""
    old: Any
    """Plain JSON; None for what is not there."""
    new: Any
    effect: Effect
    reason: str
    action: str
    """What a person has to do about it; empty when nothing."""
    source: str
    allowed: bool
    """Whether ``allow_replacement`` of the file names the path."""

    @property
    def blocked(self) -> bool:
        return self.effect is Effect.REFUSED or (self.effect.needs_leave and not self.allowed)


def policy_of(setting: str) -> Policy:
    """Return the policy of a setting, named as on its page. Raises: KeyError for an unknown setting."""
    return _BY_SETTING[setting]


def compare(deployed: Mapping[str, Any], environment: Environment) -> list[Change]:
    """
    Return the changes, worst first, then in the order of the file.

    Args:
        deployed: Result of ``environment_of``. It may be older: missing settings have their defaults, removed ones are
            ignored.
        environment: The file.
    """
    before = completed(deployed)
    after = completed(environment.model_dump(mode="json"))
    changes = []
    for difference in differences(before, after):
        policy = policy_of(difference.setting)
        edit = Edit(
            old=difference.old,
            new=difference.new,
            before=difference.before,
            after=difference.after,
            deployed=before,
            desired=after,
        )
        verdict: Policy | Case = next((case for case in policy.cases if case.holds(edit)), policy)
        changes.append(
            Change(
                path=difference.path,
                old=difference.old,
                new=difference.new,
                effect=verdict.effect,
                reason=verdict.reason,
                action=verdict.action,
                source=policy.source,
                allowed=difference.path in environment.allow_replacement,
            )
        )
    return sorted(changes, key=lambda change: (not change.blocked, -change.effect))
