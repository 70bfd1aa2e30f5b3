"""What tests of the health agent's parts share: a child that answers by script, and time that a test moves."""

from collections.abc import Sequence
from typing import Any

from holdfast_agent.children import Answer, Child
from holdfast_agent.detectors import Detector, Instant, Seen
from holdfast_agent.signals import Signal

BOOTED_NS = 1_800_000_000_000_000_000


def instant(boot_s: float) -> Instant:
    """So long after the boot."""
    return Instant(boot_s=boot_s, time_ns=BOOTED_NS + int(boot_s * 1e9))


class ScriptedChild(Child):
    """Answers each question with what the test put into ``answer``; None: it does not."""

    def __init__(self) -> None:
        super().__init__(serve=lambda question, phase: None, kill_after_s=60.0)
        self.answer: Any = None
        self.asked: list[Any] = []

    def ask(self, question: Any, boot_s: float) -> bool:
        if self.waiting:
            return False
        self.asked.append(question)
        self.waiting = True
        self._patience.begin(boot_s)
        return True

    def poll(self, boot_s: float) -> Answer | None:
        if not self.waiting:
            return None
        if self.answer is None:
            self._patience.turn(boot_s)
            return None
        self.waiting = False
        return Answer(value=self.answer)


def looks(detector: Detector, times_s: Sequence[float]) -> list[Seen]:
    """Everything that it tells when it looks at these times."""
    return [seen for time_s in times_s for seen in detector.look(instant(time_s))]


def told(seen: Sequence[Seen]) -> list[tuple[str, str, bool]]:
    """Condition, device, and whether it is over, of each signal."""
    return [(one.condition, one.device, one.over) for one in seen if isinstance(one, Signal)]
