"""What goes wrong on purpose in a rehearsed deployment."""

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Mishaps:
    """Creations that fail after the service has made the thing, as one that never becomes stable does; or come late."""

    failing: dict[str, str] = field(default_factory=dict)
    """Logical id to what the service says."""

    late: set[str] = field(default_factory=set)
    """Logical ids of what begins only when everything that does not wait for it is over."""

    def strike(self, logical_id: str) -> str:
        """What goes wrong with this creation, once; "" when nothing does."""
        return self.failing.pop(logical_id, "")
