"""Interfaces of the service, and defaults for parts that are not configured."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Protocol

from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Verdict


class Remedies(Protocol):
    def consider(
        self, verdicts: "Sequence[Verdict]", *, jobs: "Sequence[Any]", boot_s: float, answers: "Sequence[Any]" = ()
    ) -> "tuple[Happening, ...]":
        """Return what was done; never waits."""

    @property
    def phase(self) -> str: ...

    @property
    def problem(self) -> str: ...

    @property
    def leaving(self) -> "Mapping[str, Any]":
        """State of the departure that an operator requested."""

    def snapshot(self) -> "dict[str, Any]": ...

    def restore(self, snapshot: "Mapping[str, Any]") -> bool:
        """Resume in the same boot; False if the snapshot is invalid."""

    def close(self) -> None: ...


class Companion(Protocol):
    name: str
    """For people."""
    problem: str
    """Reason why it does not work; else empty."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def numbers(self) -> "Mapping[str, float]": ...


class Measuring(Companion, Protocol):
    @property
    def state(self) -> Optional[str]:
        """Reason why it does not work; "" where it works, None where unknown."""


class NoRemedies:
    """Remedies switched off: verdicts are only reported."""

    phase = "idle"
    problem = ""

    @property
    def leaving(self) -> "Mapping[str, Any]":
        return {"reason": "", "kept": {}}

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

    def close(self) -> None: ...
