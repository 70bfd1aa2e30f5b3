"""Event without time, cluster and node, which the outbox adds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Union


@dataclass(frozen=True)
class Happening:
    """Fields of ``holdfast_common.Event``; ``kind`` is one of ``holdfast_common.kinds``."""

    kind: str
    fault: str = ""
    evidence: str = ""
    action: str = ""
    job: str = ""
    duration_s: Optional[float] = None
    detail: Mapping[str, Union[str, int, float, bool]] = field(default_factory=dict)
    node: Optional[str] = None
    """Instance that it happened to. None: the agent's own."""
