"""What the device and a file have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Batch:
    """
    Args:
        lines: Whole lines, in order.
        lost: Records that were overwritten, or cut away, before they could be read.
        more: There is more to read at once.
        missing: The source cannot be read now, and why.
    """

    lines: "tuple[bytes, ...]" = ()
    lost: int = 0
    more: bool = False
    missing: str = ""


class Source:
    """A log from which lines come without waiting."""

    def read(self) -> Batch:
        """What there is, up to a limit that keeps the memory and the time of a turn bounded."""
        raise NotImplementedError

    def descriptors(self) -> "tuple[int, ...]":
        """Readable when there is something new; empty where only looking tells."""
        return ()

    def position(self) -> "dict[str, Any]":
        """How far it was read; JSON."""
        raise NotImplementedError

    def go_on(self, position: "Mapping[str, Any]") -> None:
        """Skip what was read already, where this is still the same log."""

    def close(self) -> None:
        """Let go of it."""
