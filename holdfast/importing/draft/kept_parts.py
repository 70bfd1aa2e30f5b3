"""Resources that an import keeps: all that Holdfast did not create, unless requested otherwise."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Part = Literal["eks", "network", "roles", "scripts", "storage"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, kw_only=True)
class KeptParts:
    stack: frozenset[str] = frozenset()
    """Physical ids of what the stack of this environment made: it makes them again. Default: nothing"""
    create: frozenset[Part] = frozenset()
    """Parts to create instead of using the existing ones. Default: none"""

    def keeps(self, part: Part, *ids: str) -> bool:
        """Return True if an existing resource is used, by its id or ARN."""
        return part not in self.create and not self.owns(*ids)

    def owns(self, *ids: str) -> bool:
        """Return True if the stack created it; roles and clusters are known by name."""
        return any(each in self.stack or each.rpartition("/")[2] in self.stack for each in ids)


def roles(request: Mapping[str, Any], keeping: KeptParts) -> dict[str, str]:
    groups = [*(request.get("InstanceGroups") or []), *(request.get("RestrictedInstanceGroups") or [])]
    found = {group["InstanceGroupName"]: group.get("ExecutionRole") for group in groups}
    return {name: role for name, role in found.items() if role is not None and keeping.keeps("roles", role)}


def most_common(values: Iterable[str]) -> str | None:
    """Most frequent value, the first of several; None of nothing."""
    counted: Sequence[tuple[str, int]] = Counter(values).most_common(1)
    return counted[0][0] if counted else None
