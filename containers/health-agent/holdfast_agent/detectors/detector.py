from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional, Union

from holdfast_agent.signals import Happening, Metric, Signal

REMINDED_AFTER_S = 60.0
"""Interval at which an ongoing condition is repeated."""

Seen = Union[Signal, Happening]
Facts = Mapping[str, Union[str, int, float, bool]]


@dataclass(frozen=True)
class Instant:
    """One reading of the clocks: seconds since boot for decisions, UTC nanoseconds for people."""

    boot_s: float
    time_ns: int


class Support(Enum):
    """Ability of a detector to run here; says nothing about the node's health."""

    YES = "supported"
    NO = "not supported"
    UNKNOWN = "not known yet"


class Detector:
    """
    Base class. ``look`` never waits: what may hang runs in a child process with a deadline.

    Subclasses set ``name``, ``interval_s`` and, with a child, ``deadline_s``.
    """

    name = ""
    interval_s = 30.0
    deadline_s: Optional[float] = None
    """Timeout of the child, which is itself a finding; None: nothing that could hang."""
    lost_after_s = 10.0
    """Time that it has to fail, after it worked, until it counts as lost."""

    def __init__(self) -> None:
        self.support = Support.UNKNOWN
        self.reason = ""
        """Reason why it is not supported, or fails."""
        self.hung = 0
        """Child processes that do not respond."""
        self.parts: dict[str, Optional[str]] = {}
        """Watched part, the whole as ``""`` -> reason why it does not work; "" where it works, None: not known yet."""
        self.numbers: dict[Metric, float] = {}
        """Measured values by metric name and labels."""
        self._standing: dict[tuple[str, str], tuple[float, Signal]] = {}

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        raise NotImplementedError

    def descriptors(self) -> "tuple[int, ...]":
        """File descriptors that trigger ``look`` when readable."""
        return ()

    def due_in_s(self, at: Instant) -> float:
        """Seconds until the next ``look``, if no descriptor becomes readable."""
        del at
        return self.interval_s

    def remember(self) -> "dict[str, Any]":
        """State for a restarted agent; JSON."""
        return {"holding": [[key[0], key[1], signal.evidence] for key, (_, signal) in self._standing.items()]}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        """Resume the state of the same boot: what ends now, or ended meanwhile, is reported as over."""
        for condition, device, evidence in memory.get("holding", ()):
            signal = Signal(condition=condition, boot_s=0.0, detector=self.name, device=device, evidence=evidence)
            self._standing[condition, device] = (float("-inf"), signal)

    def close(self) -> None: ...

    def asking(self) -> bool:
        return False

    def processes(self) -> "tuple[int, ...]":
        """Its child processes, one of which may be stuck."""
        return ()

    def supported(self) -> None:
        self.support, self.reason, self.parts[""] = Support.YES, "", ""

    def unsupported(self, reason: str) -> "tuple[Seen, ...]":
        """Mark as unable to run, which says nothing about the node; if it worked before, it is lost."""
        self.support, self.reason, self.parts[""] = Support.NO, reason, reason
        return ()

    def switched_off(self, reason: str) -> "tuple[Seen, ...]":
        self.support, self.reason = Support.NO, reason
        self.parts = {}
        return ()

    def holding(self, at: Instant, found: "tuple[Signal, ...]") -> "tuple[Seen, ...]":
        """
        Of all conditions that hold, return those to emit: new ones, ongoing ones (once a minute), and ended ones.

        Changed evidence or facts do not make a condition new; emit such a signal directly.
        """
        now = {(signal.condition, signal.device): signal for signal in found}
        tell: list[Seen] = []
        for key, signal in now.items():
            before = self._standing.get(key)
            if before is None or at.boot_s - before[0] >= REMINDED_AFTER_S:
                self._standing[key] = (at.boot_s, signal)
                tell.append(signal)
        tell.extend(self._ended(at, self._standing.pop(key)[1]) for key in [*self._standing] if key not in now)
        return tuple(tell)

    def _ended(self, at: Instant, signal: Signal) -> Signal:
        return Signal(
            condition=signal.condition,
            boot_s=at.boot_s,
            time_ns=at.time_ns,
            detector=self.name,
            device=signal.device,
            evidence=f"{signal.condition} is over: {signal.evidence}"[:500],
            over=True,
        )

    def signal(
        self,
        at: Instant,
        condition: str,
        evidence: str,
        *,
        device: str = "",
        code: Optional[int] = None,
        facts: "Optional[Facts]" = None,
    ) -> Signal:
        return Signal(
            condition=condition,
            boot_s=at.boot_s,
            time_ns=at.time_ns,
            detector=self.name,
            device=device,
            code=code,
            facts=dict(facts or {}),
            evidence=evidence,
        )
