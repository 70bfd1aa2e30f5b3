"""
Detector losses: it worked on this node and has failed for long enough; one that never worked is not lost.

A detector has parts, such as mount points. The part ``""`` is the detector as a whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Optional

BOOT_PATIENCE_S = 120.0
"""After a boot, for what worked before it: drivers are loaded and file systems mounted while the agent runs."""
LONGEST_STEP_S = 2.0
"""Most that one call adds: time in which the agent or the machine was suspended does not count."""


@dataclass(frozen=True)
class Report:
    """
    State of one detector after its last pass.

    Args:
        parts: Part -> reason why it does not work; empty text where it works; None where unknown. A part that is absent
            is not watched. No parts: the detector has not run yet, or is switched off.
        lost_after_s: Time that a part has to fail.
    """

    detector: str
    parts: "Mapping[str, Optional[str]]"
    lost_after_s: float


@dataclass(frozen=True)
class Change:
    """A part that is lost, or back (``lost`` is False); ``for_s``: time without it."""

    detector: str
    part: str
    lost: bool
    why: str
    for_s: float


@dataclass
class _Part:
    patience_s: float = 0.0
    failing_s: float = 0.0
    lost: bool = False
    why: str = ""


@dataclass
class Coverage:
    """State machine over all detectors: reports in, changes out."""

    _parts: "dict[tuple[str, str], _Part]" = field(default_factory=dict)
    _assessed_s: Optional[float] = None

    def assess(self, reports: "Iterable[Report]", *, boot_s: float) -> "tuple[Change, ...]":
        """Return what changed since the previous call, in the order of the reports."""
        step_s = 0.0 if self._assessed_s is None else min(max(boot_s - self._assessed_s, 0.0), LONGEST_STEP_S)
        self._assessed_s = boot_s
        found: list[Change] = []
        for report in reports:
            if report.parts:
                found += self._vanished(report)
            for part, why in report.parts.items():
                if why is not None:
                    found += self._one(report, part, why, step_s)
        return tuple(found)

    def lost(self) -> "dict[tuple[str, str], str]":
        """Detector and part -> reason."""
        return {key: part.why for key, part in sorted(self._parts.items()) if part.lost}

    def remember(self) -> "list[list[str]]":
        """Detectors and parts that have worked; what is lost is reported again by a restarted agent."""
        return [list(key) for key in sorted(self._parts)]

    def restore(self, memory: "Iterable[Iterable[str]]", *, same_boot: bool) -> None:
        """Take over what ``remember`` returned on the same node; raises ValueError if it is invalid."""
        patience_s = 0.0 if same_boot else BOOT_PATIENCE_S
        for detector, part in memory:
            self._parts[str(detector), str(part)] = _Part(patience_s=patience_s)

    def _one(self, report: Report, part: str, why: str, step_s: float) -> "tuple[Change, ...]":
        known = self._parts.get((report.detector, part))
        if not why:
            self._parts[report.detector, part] = _Part()
            return () if known is None or not known.lost else (_back(report.detector, part, known, "works again"),)
        if known is None:
            return ()
        # The first report of a failure begins the count: how long it failed before is not known.
        known.failing_s += step_s if known.why else 0.0
        known.why = why
        if known.lost or known.failing_s < max(report.lost_after_s, known.patience_s):
            return ()
        known.lost = True
        return (Change(detector=report.detector, part=part, lost=True, why=why, for_s=known.failing_s),)

    def _vanished(self, report: Report) -> "tuple[Change, ...]":
        gone = [key for key in self._parts if key[0] == report.detector and key[1] not in report.parts]
        known = [(key, self._parts.pop(key)) for key in gone]
        return tuple(_back(*key, part, "no longer watched") for key, part in known if part.lost)


def _back(detector: str, name: str, part: _Part, why: str) -> Change:
    return Change(detector=detector, part=name, lost=False, why=why, for_s=part.failing_s)
