from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Optional

from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy, Severity, When

_ORDER = (Remedy.RESET_GPU, Remedy.REBOOT, Remedy.REPLACE)
"""Those that take a node or one of its devices. A process is its runtime's: it sees it end, and starts it again."""


@dataclass(frozen=True)
class Need:
    """One incident that requires the node; without a device, the whole node."""

    incident: str
    fault: str
    remedy: Remedy
    when: When
    device: str = ""
    evidence: str = ""

    @property
    def key(self) -> str:
        return f"{self.incident}:{self.remedy.value}"

    def to_json(self) -> "dict[str, str]":
        return {**asdict(self), "remedy": self.remedy.value, "when": self.when.value}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Need":
        texts = {name: str(values[name]) for name in ("incident", "fault", "device", "evidence")}
        return Need(remedy=Remedy(values["remedy"]), when=When(values["when"]), **texts)


def need_of(verdict: Verdict) -> Optional[Need]:
    """
    Remedy of a verdict; None if the node is not concerned.

    A process's fault never takes the node: a job reports its own processes only.
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
    """The need whose remedy covers the others; immediate before boundary."""
    return max(needs, key=lambda need: (_ORDER.index(need.remedy), need.when is When.NOW, need.incident), default=None)
