"""
Messages between launchers, beside those of the membership protocol.

All launchers of a job are of one version: unknown or missing fields are refused. Texts are for people.
"""

from dataclasses import dataclass
from typing import Literal

from holdfast_runtime import membership
from holdfast_runtime.control import Change, Changed, Codec, Keys
from holdfast_runtime.overlay import Packet
from holdfast_runtime.patience import Error


@dataclass(frozen=True)
class Challenge:
    """The first line of whoever accepts a connection."""

    nonce: str


def identity_of(uid: str) -> int:
    return int(uid, 16)


@dataclass(frozen=True)
class Hello:
    """Identity of the sender, and the launchers that it has met."""

    node: int
    incarnation: int
    uid: str
    """Of this launcher process: distinguishes two of one node and incarnation."""
    run_id: str
    host: str
    port: int
    met: tuple[tuple[int, str, int], ...]
    """Node, uid and newest incarnation of others that this launcher, or one that reported it, has had a link with. The
    uid is empty where two had the same incarnation."""
    nonce: str
    call: int = 0
    """How many calls the caller had made before. Of two connections that it made to one launcher the later counts, on
    both sides, whichever handshake ends first."""
    proof: str = ""
    """Proof of the run's token."""

    @property
    def identity(self) -> int:
        return identity_of(self.uid)


Refusal = Literal["token", "run", "itself", "direction", "taken", "replaced"]
"""Another token or run; the caller called itself; the higher node calls; its place is taken, or was given away."""


@dataclass(frozen=True)
class Refused:
    """No link, and why. ``incarnation`` is what the caller has to have, where that is the reason; else -1."""

    code: Refusal
    reason: str
    incarnation: int = -1
    proof: str = ""
    """Proof of the run's token; empty where the caller has none."""


@dataclass(frozen=True)
class Beat:
    """A sign of life."""


@dataclass(frozen=True)
class HeartbeatRequest:
    """Request of heartbeats from the receiver, or their end."""

    requested: bool


@dataclass(frozen=True)
class LinkNeed:
    """The sender needs this connection, or no longer."""

    needed: bool


@dataclass(frozen=True)
class Disconnect:
    """The sender ends this connection; ``over`` where it has no part in the job any more."""

    over: bool = False


@dataclass(frozen=True)
class Trouble:
    """Something broke here: the view of this generation has to be followed by another."""

    generation: int
    reason: str
    planned: bool = False
    """Whether nothing broke: the ranks have left between two steps, as was announced."""


@dataclass(frozen=True)
class HandOverAt:
    """All ranks are to leave after a common step, the first that makes so many: this node gives its ranks away."""

    generation: int
    after_step: int
    reason: str
    leaving: bool = True
    """Whether it is this node that gives its ranks away; otherwise the job changes its size."""


@dataclass(frozen=True)
class BuildAt:
    """The sender is to give these ranks away: spares of the receiver are to make their models."""

    generation: int
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class BuiltAt:
    """They have, or will not."""

    generation: int


@dataclass(frozen=True)
class SizeAsked:
    """Somebody wants the job to have another size."""

    asked: membership.Asked


@dataclass(frozen=True)
class Spares:
    """So many warm processes of this node have no rank and may get one."""

    ready: int


@dataclass(frozen=True)
class Settled:
    """All ranks of this node are in the generation, with their state and connected: the next step can run."""

    generation: int
    instance: str
    """Instance id of the node; empty outside of a cluster."""
    copy_s: float
    """From the view to the end of the last copy of state here; 0 where there was none."""


@dataclass(frozen=True)
class AllSettled:
    """Reports of all launchers of the generation, by node, gathered by the first."""

    generation: int
    reports: tuple[tuple[int, Settled], ...]


@dataclass(frozen=True)
class RaisedAt:
    """The program raised an exception in a process of this launcher."""

    error: Error


@dataclass(frozen=True)
class ChangeAt:
    """A rank of another node asks for a change of an entry."""

    node: int
    slot: int
    change: Change


@dataclass(frozen=True)
class ChangedAt:
    """The answer to it."""

    node: int
    slot: int
    answer: Changed


@dataclass(frozen=True)
class Warm:
    """Ranks here stay alive through faults: start the spares."""


@dataclass(frozen=True)
class Done:
    """All ranks of this node have finished, or the job has to stop with this exit code."""

    exit_code: int
    reason: str


LinkMessage = (
    Beat
    | HeartbeatRequest
    | LinkNeed
    | Disconnect
    | Packet
    | Trouble
    | HandOverAt
    | BuildAt
    | BuiltAt
    | SizeAsked
    | Spares
    | Settled
    | AllSettled
    | RaisedAt
    | Warm
    | Keys
    | ChangeAt
    | ChangedAt
    | Done
    | membership.Message
)

HANDSHAKE: Codec[Challenge | Hello | Refused] = Codec(challenge=Challenge, hello=Hello, refused=Refused)
LINK: Codec[LinkMessage] = Codec(
    {membership.View: membership.View, membership.Unread: membership.View},
    beat=Beat,
    heartbeat_request=HeartbeatRequest,
    link_need=LinkNeed,
    disconnect=Disconnect,
    packet=Packet,
    trouble=Trouble,
    hand_over=HandOverAt,
    build=BuildAt,
    built=BuiltAt,
    size_asked=SizeAsked,
    spares=Spares,
    settled=Settled,
    all_settled=AllSettled,
    raised=RaisedAt,
    warm=Warm,
    keys=Keys,
    change=ChangeAt,
    changed=ChangedAt,
    done=Done,
    prepare=membership.Prepare,
    promise=membership.Promise,
    refuse=membership.Refuse,
    accept=membership.Accept,
    accepted=membership.Accepted,
    commit=membership.Commit,
)
