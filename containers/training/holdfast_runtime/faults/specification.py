"""Specification of a fault. Data only."""

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal["SIGKILL", "SIGSTOP", "SIGSEGV", "exception", "exit", "corrupt", "slow", "cut"]
"""corrupt, slow and cut are of a transfer of state: one byte, the link's speed, the link."""

LINK_KINDS = ("corrupt", "slow", "cut")
VICTIMS = ("self", "launcher", "spare", "forker", "rank:N")


class InjectedError(RuntimeError):
    """The exception of a fault of kind exception."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Happens when ``rank`` reaches ``phase`` of ``step``, at most ``times`` times over all processes of the job."""

    kind: Kind
    phase: str
    """data, forward, bucket:N, vote (all gradients are reduced), update, commit, ready, view, connect, confirm,
    copy-out (at the donor), copy-in (at the receiver), give (at a process that leaves, when its rank is another's);
    of a snapshot and its step: snapshot (it is copied), bring (it goes to its keeper), keep (at the keeper), hand-out
    (at the keeper, when it is fetched back), fetch (at who fetches it); of a spare: trial (a step that counts for
    nothing begins); of a change of size: leaving (the vote of the last step), boundary (after it), cut, parts (before
    rows come), placed (they are in), joined, resized (all have confirmed)."""
    rank: int | None = None
    """Default: any rank."""
    step: int | None = None
    """The update that follows so many finished ones. Default: any step."""
    victims: tuple[str, ...] = ("self",)
    """self, launcher (with all processes of its node), spare (the first warm one of this node), forker (the process
    that forks ranks) or rank:N of this node. Default: the process that reaches the phase."""
    times: int = 1
    back: int = 0
    """So many steps before ``step`` count as well: those that a job may go back to. Default: none."""

    def matches(self, *, phase: str, rank: int, step: int) -> bool:
        return (
            self.phase == phase
            and (self.rank is None or self.rank == rank)
            and (self.step is None or self.step - self.back <= step <= self.step)
        )


def parse_faults(text: str) -> tuple[Fault, ...]:
    """
    The faults of a JSON list of objects.

    Raises:
        ValueError: it is none, or a fault cannot be.
    """
    values = json.loads(text or "[]")
    if not isinstance(values, list):
        raise ValueError(f"faults must be a JSON list of objects, got {text[:80]!r}")  # noqa: TRY004
    return tuple(_fault(value) for value in values)


def _fault(value: Any) -> Fault:
    try:
        fault = Fault(**{**value, "victims": tuple(value.get("victims", ("self",)))})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{value!r} is no fault: {error}") from None
    if fault.kind not in get_args(Kind):
        raise ValueError(f"kind of a fault must be one of {', '.join(get_args(Kind))}, got {fault.kind!r}")
    for victim in fault.victims:
        if victim not in VICTIMS[:-1] and not (victim.startswith("rank:") and victim[5:].isdigit()):
            raise ValueError(f"victims of a fault are {', '.join(VICTIMS)}, got {victim!r}")
    return fault
