"""Value that only AWS knows."""

from typing import Any


class Unresolved:
    def __repr__(self) -> str:
        return "UNRESOLVED"


UNRESOLVED: Any = Unresolved()
"""What stands where a value cannot be known."""
