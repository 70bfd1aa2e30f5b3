from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Batch:
    """
    Args:
        lines: Whole lines, in order.
        lost: Records overwritten or truncated before they were read.
        more: Read again at once.
        missing: Reason why the source is unreadable.
    """

    lines: "tuple[bytes, ...]" = ()
    lost: int = 0
    more: bool = False
    missing: str = ""


class Source:
    def read(self) -> Batch:
        """Return new lines, up to a limit on memory and time."""
        raise NotImplementedError

    def descriptors(self) -> "tuple[int, ...]":
        """Readable when there are new lines; empty where only polling helps."""
        return ()

    def position(self) -> "dict[str, Any]":
        raise NotImplementedError

    def go_on(self, position: "Mapping[str, Any]") -> None:
        """Skip what was read already, if this is still the same log."""

    def close(self) -> None: ...
