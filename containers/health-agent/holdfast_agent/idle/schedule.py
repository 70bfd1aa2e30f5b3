"""Schedule of idle checks: start, stop, and confirm a result. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

BOUNDARY_S = 5.0
"""Idle time before a check: jobs that follow each other leave no boundary."""
IDLE_S = 300.0
"""Idle time before a routine check, on a node that is likely to stay idle."""
MOST_CHECKED = 256


@dataclass(frozen=True)
class Look:
    """
    Args:
        boot_s: Now.
        needed: Reason why the node is needed; empty: idle.
        due: Incidents that require a deep check.
        is_sound: No other incident requires a remedy, and none is in progress.
    """

    boot_s: float
    needed: str = ""
    due: "frozenset[str]" = frozenset()
    is_sound: bool = True


class Turn(Enum):
    NOTHING = "nothing"
    START = "start"
    LEAVE = "leave"


class IdleSchedule:
    """Repeats checks on an idle node every ``repeat_s`` (0: only when a verdict requires one)."""

    def __init__(self, *, repeat_s: float, began_s: float) -> None:
        self._repeat_s = repeat_s
        self._last_s = began_s
        self._free_since_s: Optional[float] = None
        self._checked: list[str] = []
        self._doubt: tuple[str, ...] = ()
        self.found: tuple[str, ...] = ()
        """Problem found twice in a row; else empty."""
        self.left = 0
        """Checks stopped because the node was needed."""

    def decide(self, now: Look, *, running: bool) -> Turn:
        """Return the next action; a running check is stopped at once when the node is needed."""
        if now.needed:
            self._free_since_s = None
            self.left += running
            return Turn.LEAVE if running else Turn.NOTHING
        if self._free_since_s is None:
            self._free_since_s = now.boot_s
        if running or not now.is_sound:
            return Turn.NOTHING
        free_s = now.boot_s - self._free_since_s
        asked = bool(self._open(now.due)) or bool(self._doubt)
        return (
            Turn.START if (asked and free_s >= BOUNDARY_S) or (self.is_due(now) and free_s >= IDLE_S) else Turn.NOTHING
        )

    def is_due(self, now: Look) -> bool:
        routine = self._repeat_s > 0 and now.boot_s - self._last_s >= self._repeat_s
        return routine or bool(self._doubt) or bool(self._open(now.due))

    def ended(self, problems: "tuple[str, ...]", now: Look) -> None:
        """Take the result of a check; a problem counts once the next check finds one, too."""
        self._last_s = now.boot_s
        if problems and not self._doubt and not self.found:
            self._doubt = problems
            return
        self.found, self._doubt = problems, ()
        self._checked = [*self._checked, *sorted(self._open(now.due))][-MOST_CHECKED:]

    def gave_no_result(self, now: Look) -> None:
        """Handle a check without a result; retried when the next one is due."""
        self._last_s = now.boot_s
        self._doubt = ()
        self._checked = [*self._checked, *sorted(self._open(now.due))][-MOST_CHECKED:]

    def snapshot(self) -> "dict[str, Any]":
        return {"last_s": self._last_s, "checked": self._checked, "found": list(self.found)}

    def restore(self, snapshot: "Mapping[str, Any]") -> None:
        """Resume in the same boot. Raises KeyError, TypeError or ValueError."""
        self._last_s = float(snapshot["last_s"])
        self._checked = [str(one) for one in snapshot["checked"]]
        self.found = tuple(str(one) for one in snapshot["found"])

    def _open(self, due: "frozenset[str]") -> "frozenset[str]":
        return due - frozenset(self._checked)
