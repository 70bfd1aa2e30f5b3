"""Findings, for people, programs and the CDK."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "not-checked"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "not-checked")
"""Worst first."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Violation, or a rule that could not be judged."""

    code: str
    """Stable; `holdfast explain CODE` prints its page."""
    severity: Severity
    path: str
    """The setting or property, in the words of the source; empty for the source as a whole."""
    message: str
    """What was given, and what is allowed or what becomes of it."""
    fix: str
    """What to do."""
    line: int | None = None
    """Counted from 1. Default: the source has no lines."""
    cause: str = ""
    """Why it was not checked, when more than one finding may have the same reason. Default: it stands alone."""

    def __str__(self) -> str:
        where = f" {self.path}" if self.path else ""
        return f"{self.severity} {self.code}{where}: {self.message}; {self.fix}"


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, warnings, not checked; within each in the order of the source."""
    return sorted(
        findings,
        key=lambda finding: (
            SEVERITIES.index(finding.severity),
            finding.line or 0,
            finding.path,
            finding.code,
            finding.message,
        ),
    )
