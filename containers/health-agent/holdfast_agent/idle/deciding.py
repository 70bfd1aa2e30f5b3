"""When a node is tried out again, when that is left, and when what it found is believed. Pure: the time is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

BOUNDARY_S = 5.0
"""Free for so long: jobs that follow each other leave no boundary."""
IDLE_S = 300.0
"""What nobody waits for is done on a node that is likely to stay free."""
MOST_CHECKED = 256


@dataclass(frozen=True)
class Look:
    """
    Args:
        boot_s: Now.
        needed: By whom the node is needed; empty: by nobody.
        due: Incidents that ask for a deep check.
        is_sound: Nothing else is asked of the node, and no remedy is under way.
    """

    boot_s: float
    needed: str = ""
    due: "frozenset[str]" = frozenset()
    is_sound: bool = True


class Turn(Enum):
    """What to do now."""

    NOTHING = "nothing"
    START = "start"
    LEAVE = "leave"


class IdleTime:
    """
    Args:
        repeat_s: How long after a check the next one is due on an idle node; 0: only when a verdict asks for one.
        began_s: When the node was tried out last, or the agent began.
    """

    def __init__(self, *, repeat_s: float, began_s: float) -> None:
        self._repeat_s = repeat_s
        self._last_s = began_s
        self._free_since_s: Optional[float] = None
        self._checked: list[str] = []
        self._doubt: tuple[str, ...] = ()
        self.found: tuple[str, ...] = ()
        """What is wrong, seen twice in a row; empty: nothing is."""
        self.left = 0
        """How often a check was left because somebody needed the node."""

    def decide(self, now: Look, *, running: bool) -> Turn:
        """The next turn; a check that runs gives way at once."""
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
        """Whether a check is wanted, now or as soon as the node is free."""
        routine = self._repeat_s > 0 and now.boot_s - self._last_s >= self._repeat_s
        return routine or bool(self._doubt) or bool(self._open(now.due))

    def ended(self, problems: "tuple[str, ...]", now: Look) -> None:
        """A check ended by itself; what it found is believed once the next one finds something, too."""
        self._last_s = now.boot_s
        if problems and not self._doubt and not self.found:
            self._doubt = problems
            return
        self.found, self._doubt = problems, ()
        self._checked = [*self._checked, *sorted(self._open(now.due))][-MOST_CHECKED:]

    def gave_no_word(self, now: Look) -> None:
        """It could not be done, which says nothing of the node; it is tried again when the next one is due."""
        self._last_s = now.boot_s
        self._doubt = ()
        self._checked = [*self._checked, *sorted(self._open(now.due))][-MOST_CHECKED:]

    def snapshot(self) -> "dict[str, Any]":
        return {"last_s": self._last_s, "checked": self._checked, "found": list(self.found)}

    def restore(self, snapshot: "Mapping[str, Any]") -> None:
        """Of the same boot. Raises KeyError, TypeError or ValueError."""
        self._last_s = float(snapshot["last_s"])
        self._checked = [str(one) for one in snapshot["checked"]]
        self.found = tuple(str(one) for one in snapshot["found"])

    def _open(self, due: "frozenset[str]") -> "frozenset[str]":
        return due - frozenset(self._checked)
