"""Wall clock: synchronized, in step with the time since boot, and that of AWS."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Optional

from holdfast_agent.detectors.detector import Detector, Instant, Seen
from holdfast_agent.signals import Signal, conditions

UNSYNCHRONISED = 0x40
JUMP_S = 1.0
"""Between two looks; a clock that is slewed goes at most 500 ppm apart."""
WRONG_S = 60.0
"""Above what requests take; AWS refuses those whose time is 5 minutes off."""


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("most_error_us", ctypes.c_long),
        ("error_us", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_ubyte * 256),
    )


def kernel_clock() -> "tuple[int, float]":
    """Status bits of the kernel's clock and its maximum error in seconds (adjtimex, read-only, needs no privilege)."""
    state = _Timex()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(ctypes.byref(state)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")
    return state.status, state.most_error_us / 1e6


class Clock(Detector):
    """Reports a clock that is no longer synchronized; many container hosts never have a time service."""

    name = "clock"
    interval_s = 30.0

    def __init__(self, *, skew_s: Callable[[], float] = lambda: 0.0) -> None:
        """``skew_s``: AWS's clock minus this machine's; 0 unless AWS refused a request for its time."""
        super().__init__()
        self._skew_s = skew_s
        self._kept = False
        self._offset_ns: Optional[int] = None

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        jumped = self._jumped(at)
        unsynchronised = self._unsynchronised(at)
        return jumped + self.holding(at, self._against_aws(at) or unsynchronised)

    def _unsynchronised(self, at: Instant) -> "tuple[Signal, ...]":
        try:
            status, error_s = kernel_clock()
        except (OSError, AttributeError) as problem:
            self.unsupported(f"cannot read the kernel's clock state: {problem}")
            return ()
        self.numbers = {
            ("node_timex_sync_status", ()): 0.0 if status & UNSYNCHRONISED else 1.0,
            ("node_timex_maxerror_seconds", ()): error_s,
        }
        if not status & UNSYNCHRONISED:
            self._kept = True
        if not self._kept:
            self.unsupported("no time service synchronizes this clock")
            return ()
        self.supported()
        if not status & UNSYNCHRONISED:
            return ()
        text = f"clock is no longer synchronized; error may be up to {error_s:.3g} s"
        return (self.signal(at, conditions.CLOCK_WRONG, text, facts={"error_s": error_s}),)

    def _against_aws(self, at: Instant) -> "tuple[Signal, ...]":
        by_s = round(self._skew_s())
        if abs(by_s) < WRONG_S:
            return ()
        text = f"the clock is {abs(by_s)} s {'behind' if by_s > 0 else 'ahead of'} AWS's"
        return (self.signal(at, conditions.CLOCK_WRONG, text, facts={"by_s": -by_s}),)

    def remember(self) -> "dict[str, Any]":
        return {**super().remember(), "kept": self._kept}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        self._kept = bool(memory.get("kept"))

    def _jumped(self, at: Instant) -> "tuple[Seen, ...]":
        offset_ns, before = at.time_ns - int(at.boot_s * 1e9), self._offset_ns
        self._offset_ns = offset_ns
        if before is None or abs(offset_ns - before) < JUMP_S * 1e9:
            return ()
        by_s = round((offset_ns - before) / 1e9, 3)
        text = f"the wall clock jumped by {by_s:g} s"
        return (self.signal(at, conditions.CLOCK_WRONG, text, facts={"by_s": by_s}),)
