"""What one trial found."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trial:
    """
    Args:
        name: Which one.
        problems: What is wrong with the node.
        figures: How fast it was; more is better.
        skipped: Why it was not done; that says nothing about the node.
    """

    name: str
    problems: "tuple[str, ...]" = ()
    figures: "Mapping[str, float]" = field(default_factory=dict)
    skipped: str = ""
