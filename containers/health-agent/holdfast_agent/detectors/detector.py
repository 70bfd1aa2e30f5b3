"""What all detectors have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional, Union

from holdfast_agent.signals import Happening, Metric, Signal

REMINDED_AFTER_S = 60.0
"""How often a condition that goes on holding is told again."""

Seen = Union[Signal, Happening]
Facts = Mapping[str, Union[str, int, float, bool]]


@dataclass(frozen=True)
class Instant:
    """One reading of the clocks: seconds since boot for decisions, UTC nanoseconds for people."""

    boot_s: float
    time_ns: int


class Support(Enum):
    """Whether a detector can see anything here. None of these is a finding about the node."""

    YES = "supported"
    NO = "not supported"
    UNKNOWN = "not known yet"


class Detector:
    """
    One pair of eyes. ``look`` never waits: what may hang is asked in a child process with a deadline.

    Subclasses set ``name``, ``interval_s`` and, where they ask something that may not answer, ``deadline_s``.
    """

    name = ""
    interval_s = 30.0
    deadline_s: Optional[float] = None
    """How long what is asked may take before that is itself a finding; None: nothing is asked that could hang."""
    lost_after_s = 10.0
    """How long it has to fail, after it worked, until it counts as lost."""

    def __init__(self) -> None:
        self.support = Support.UNKNOWN
        self.reason = ""
        """Why it is not supported, or what is wrong with its source."""
        self.hung = 0
        """Processes that were asked and do not answer."""
        self.parts: dict[str, Optional[str]] = {}
        """What it watches, the whole as ``""`` -> why it does not work now; "" where it works, None: not known yet."""
        self.numbers: dict[Metric, float] = {}
        """What it measured, by the name of a metric and its labels."""
        self._standing: dict[tuple[str, str], tuple[float, Signal]] = {}

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        """What there is to tell now."""
        raise NotImplementedError

    def descriptors(self) -> "tuple[int, ...]":
        """What to wait on beside the time: ``look`` is called when one is readable."""
        return ()

    def wanted_in_s(self, at: Instant) -> float:
        """Seconds until the next look, when nothing becomes readable before."""
        del at
        return self.interval_s

    def remember(self) -> "dict[str, Any]":
        """What a restarted agent has to know; JSON."""
        return {"told": [[key[0], key[1], signal.evidence] for key, (_, signal) in self._standing.items()]}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        """Go on from what ``remember`` gave in the same boot: what ends now, or ended meanwhile, is told to be over."""
        for condition, device, evidence in memory.get("told", ()):
            told = Signal(condition=condition, boot_s=0.0, detector=self.name, device=device, evidence=evidence)
            self._standing[condition, device] = (float("-inf"), told)

    def close(self) -> None:
        """Let go of files and processes, without waiting for any that does not end."""

    def asking(self) -> bool:
        """Whether a question is out."""
        return False

    def processes(self) -> "tuple[int, ...]":
        """Those that it asks, one of which may be stuck."""
        return ()

    def supported(self) -> None:
        """There is what it looks at."""
        self.support, self.reason, self.parts[""] = Support.YES, "", ""

    def unsupported(self, reason: str) -> "tuple[Seen, ...]":
        """There is nothing to look at, which says nothing about the node; where there was, the detector is lost."""
        self.support, self.reason, self.parts[""] = Support.NO, reason, reason
        return ()

    def switched_off(self, reason: str) -> "tuple[Seen, ...]":
        """The configuration, or the kind of node, leaves it out."""
        self.support, self.reason = Support.NO, reason
        self.parts = {}
        return ()

    def holding(self, at: Instant, found: "tuple[Signal, ...]") -> "tuple[Seen, ...]":
        """
        Of all conditions that hold now, those to tell: what is new, what goes on (once a minute), and what has ended.

        One whose evidence or facts changed is not new; who needs that tells the signal without this.
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
        """A sighting by this detector at this time."""
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
