from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trial:
    """
    Args:
        problems: Faults of the node.
        figures: Speeds; more is better.
        skipped: Reason, if it was not run.
    """

    name: str
    problems: "tuple[str, ...]" = ()
    figures: "Mapping[str, float]" = field(default_factory=dict)
    skipped: str = ""
