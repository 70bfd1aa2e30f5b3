"""From verdicts to the report of a node: the strongest remedy that it requires."""

from collections.abc import Iterable
from typing import Optional

from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy, Severity, When
from holdfast_common.decisions import Report

_ORDER = (Remedy.RESET_GPU, Remedy.REBOOT, Remedy.REPLACE)
"""Those that take a node or one of its devices. A process is its runtime's: it sees it end, and starts it again."""


def report_of(verdict: Verdict, *, instance: str) -> Optional[Report]:
    """
    Report of a verdict; None if the node is not concerned.

    A process's fault never takes the node: a job reports its own processes only.
    """
    if verdict.withdrawn or verdict.remedy not in _ORDER or verdict.severity in (Severity.PROCESS, Severity.INFO):
        return None
    return Report(
        incident=verdict.incident,
        fault=verdict.fault,
        remedy=verdict.remedy,
        when=verdict.when,
        instance=instance,
        evidence=verdict.evidence[0].text[:300] if verdict.evidence else "",
        device=verdict.device,
    )


def strongest(reports: Iterable[Report]) -> Optional[Report]:
    """The report whose remedy covers the others; immediate before boundary."""
    return max(reports, key=lambda one: (_ORDER.index(one.remedy), one.when is When.NOW, one.incident), default=None)
