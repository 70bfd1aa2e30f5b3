"""What an imported environment keeps of a team's own: all that Holdfast did not make, unless it is told not to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Part = Literal["eks", "network", "roles", "scripts", "storage"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Parts that are used as they exist, and parts that are created."""

    stack: frozenset[str] = frozenset()
    """Physical ids of what the stack of this environment made: it makes them again. Default: nothing"""
    create: frozenset[Part] = frozenset()
    """Parts to create instead of using the existing ones. Default: none"""

    def keeps(self, part: Part, *ids: str) -> bool:
        """Return True if something that is there, by its id or ARN, is used as it is."""
        return part not in self.create and not self.owns(*ids)

    def owns(self, *ids: str) -> bool:
        """Return True if the stack made it; a stack knows roles and clusters by their names."""
        return any(each in self.stack or each.rpartition("/")[2] in self.stack for each in ids)


def roles(request: Mapping[str, Any], keeping: Keeping) -> dict[str, str]:
    """The execution roles that are kept, by the name of the group that has it."""
    groups = [*(request.get("InstanceGroups") or []), *(request.get("RestrictedInstanceGroups") or [])]
    found = {group["InstanceGroupName"]: group.get("ExecutionRole") for group in groups}
    return {name: role for name, role in found.items() if role is not None and keeping.keeps("roles", role)}


def most_common(values: Iterable[str]) -> str | None:
    """The value that most have, the first of them where several are as common; None of nothing."""
    counted: Sequence[tuple[str, int]] = Counter(values).most_common(1)
    return counted[0][0] if counted else None
