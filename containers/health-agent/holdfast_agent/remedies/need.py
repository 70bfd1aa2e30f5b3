"""What a node needs, of all that was judged. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Optional

from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy, Severity, When

_ORDER = (Remedy.RESET_GPU, Remedy.REBOOT, Remedy.REPLACE)
"""Those that take a node or one of its devices. A process is its runtime's: it sees it end, and starts it again."""


@dataclass(frozen=True)
class Need:
    """
    One incident that asks for the node.

    Args:
        incident: Its id.
        fault: Row of the taxonomy.
        remedy: What it asks for.
        when: How long that may wait.
        device: Which device; empty: the node.
        evidence: The first line.
    """

    incident: str
    fault: str
    remedy: Remedy
    when: When
    device: str = ""
    evidence: str = ""

    @property
    def key(self) -> str:
        """Changes when the incident asks for more."""
        return f"{self.incident}:{self.remedy.value}"

    def to_json(self) -> "dict[str, str]":
        return {**asdict(self), "remedy": self.remedy.value, "when": self.when.value}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Need":
        """Raises KeyError, TypeError or ValueError."""
        texts = {name: str(values[name]) for name in ("incident", "fault", "device", "evidence")}
        return Need(remedy=Remedy(values["remedy"]), when=When(values["when"]), **texts)


def need_of(verdict: Verdict) -> Optional[Need]:
    """
    What a verdict asks of the node; None where that is nothing.

    What is a process's matter never takes the node: a job accuses its own processes only.
    """
    if verdict.withdrawn or verdict.remedy not in _ORDER or verdict.severity in (Severity.PROCESS, Severity.INFO):
        return None
    return Need(
        incident=verdict.incident,
        fault=verdict.fault,
        remedy=verdict.remedy,
        when=verdict.when,
        device=verdict.device,
        evidence=verdict.evidence[0].text[:300] if verdict.evidence else "",
    )


def strongest(needs: Iterable[Need]) -> Optional[Need]:
    """The one that cures the others, too; at once before at a boundary."""
    return max(needs, key=lambda need: (_ORDER.index(need.remedy), need.when is When.NOW, need.incident), default=None)
