"""Deliberate failures of a rehearsed deployment."""

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Mishaps:
    """Creations that fail after the resource exists, or are late."""

    failing: dict[str, str] = field(default_factory=dict)
    """Logical id to the service's message."""

    late: set[str] = field(default_factory=set)
    """Logical ids of resources that start only when all independent ones are done."""

    def strike(self, logical_id: str) -> str:
        """Return the failure of this creation, once; or ""."""
        return self.failing.pop(logical_id, "")
