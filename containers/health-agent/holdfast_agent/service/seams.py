"""What the service asks of the rooms beside it, and what stands there where a configuration leaves one out."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Protocol

from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Verdict


class Hands(Protocol):
    """Remedies: told of every verdict, and asked once a second what they have done."""

    def consider(
        self, verdicts: "Sequence[Verdict]", *, jobs: "Sequence[Any]", boot_s: float, answers: "Sequence[Any]" = ()
    ) -> "tuple[Happening, ...]":
        """What was done about them; never waits."""

    @property
    def phase(self) -> str:
        """How far the remedy of this node has come, for people."""

    @property
    def problem(self) -> str:
        """What keeps it from going on."""

    def snapshot(self) -> "dict[str, Any]":
        """What has to outlive the agent, for JSON."""

    def restore(self, snapshot: "Mapping[str, Any]") -> bool:
        """Go on where an agent of the same boot ended; False where the snapshot is none."""

    def close(self) -> None:
        """Let go of processes."""


class Launchers(Protocol):
    """The launchers of this node's jobs."""

    def fileno(self) -> int:
        """Readable when ``poll`` has something to do."""

    def poll(self) -> None:
        """Take what has come."""

    def jobs(self) -> "tuple[Any, ...]":
        """What each said last."""

    def answers(self) -> "tuple[Any, ...]":
        """What became of commands, since the last call."""

    def close(self) -> None:
        """Leave them to themselves."""


class Watch(Protocol):
    """Something that has happenings of its own, such as the controller's watch."""

    def poll(self, *, boot_s: float) -> "tuple[Happening, ...]":
        """What happened since the last call; never waits."""

    def snapshot(self) -> "dict[str, Any]":
        """What has to outlive the agent; JSON."""

    def close(self) -> None:
        """Let go."""


class Companion(Protocol):
    """Something with a thread of its own, such as what ships events."""

    name: str
    """For people."""
    problem: str
    """What keeps it from its work now; empty where nothing does."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End soon."""

    def numbers(self) -> "Mapping[str, float]":
        """For metrics."""


class Measuring(Companion, Protocol):
    """A companion that serves or sends metrics."""

    @property
    def state(self) -> Optional[str]:
        """Why it does not work now; "" where it works, None where that is not known yet."""


class NoHands:
    """Verdicts are told, and nothing is asked for."""

    phase = "idle"
    problem = ""

    def consider(
        self, verdicts: "Sequence[Verdict]", *, jobs: "Sequence[Any]", boot_s: float, answers: "Sequence[Any]" = ()
    ) -> "tuple[Happening, ...]":
        del verdicts, jobs, boot_s, answers
        return ()

    def snapshot(self) -> "dict[str, Any]":
        return {}

    def restore(self, snapshot: "Mapping[str, Any]") -> bool:
        del snapshot
        return True

    def close(self) -> None:
        """There is nothing to let go of."""
