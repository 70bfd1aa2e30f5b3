"""
Messages between a launcher and the witness: JSON lines, a handshake first.

A launcher of a run whose view names no witness registers with a key derived from the run's token. Others join by the
identity in the view, and prove that they have the same key.
"""

import hmac
from dataclasses import dataclass
from typing import Literal

from holdfast_runtime import membership
from holdfast_runtime.control import Codec

IDENTITY_BITS = 52
"""What every reader of JSON keeps as it is."""


@dataclass(frozen=True)
class Challenge:
    """The first line of the witness."""

    nonce: str


@dataclass(frozen=True)
class Open:
    """Make a memory for this run; who wants to join it has to know the key."""

    run_id: str
    seat: int
    key: str
    nonce: str


@dataclass(frozen=True)
class Join:
    """I belong to the run whose view names this identity."""

    identity: int
    nonce: str
    proof: str


@dataclass(frozen=True)
class SeatGranted:
    """You speak with this memory. ``proof`` is of your nonce."""

    identity: int
    proof: str


@dataclass(frozen=True)
class Refused:
    """No link, and why."""

    reason: str
    unknown: bool = False
    """Whether it remembers nothing of this identity."""


@dataclass(frozen=True)
class Beat:
    """A sign of life, answered by one."""


@dataclass(frozen=True)
class Goodbye:
    """This launcher ends: without any other the run may be forgotten."""


Handshake = Challenge | Open | Join | SeatGranted | Refused
WitnessMessage = Beat | Goodbye | membership.Message

HANDSHAKE: Codec[Handshake] = Codec(challenge=Challenge, open=Open, join=Join, seated=SeatGranted, refused=Refused)
WITNESS: Codec[WitnessMessage] = Codec(
    {membership.Unread: membership.View},
    beat=Beat,
    goodbye=Goodbye,
    prepare=membership.Prepare,
    promise=membership.Promise,
    refuse=membership.Refuse,
    accept=membership.Accept,
    accepted=membership.Accepted,
    commit=membership.Commit,
)
BEAT = WITNESS.encode(Beat()) + b"\n"


def key_of(*, token: str, run_id: str) -> str:
    return hmac.new(token.encode(), f"witness of {run_id}".encode(), "sha256").hexdigest()


def proof(role: Literal["join", "seated"], key: str, *, identity: int, nonce: str) -> str:
    return hmac.new(key.encode(), f"{role}/{identity}/{nonce}".encode(), "sha256").hexdigest()
