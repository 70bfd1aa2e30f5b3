"""Overlay at one launcher: reactions to connections, and to packets of neighbours."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from holdfast_runtime.overlay.messages import Letter, Member, Packet, Suspicion
from holdfast_runtime.overlay.ring import Ring
from holdfast_runtime.overlay.roster import Roster
from holdfast_runtime.overlay.router import Router

HOLD_S = 0.005
"""What is passed on for others waits so long for more that goes the same way."""


@dataclass(frozen=True)
class Write:
    """Send to a neighbour."""

    node: int
    packet: Packet


@dataclass(frozen=True)
class Up:
    """A launcher is in reach."""

    member: Member


@dataclass(frozen=True)
class Down:
    """A launcher is gone; a connection to it is to be ended."""

    node: int
    why: str


@dataclass(frozen=True)
class Deliver:
    """A launcher says something to this one."""

    origin: int
    body: str


@dataclass(frozen=True)
class Rival:
    """Another launcher has this one's place."""

    incarnation: int


Effect = Write | Up | Down | Deliver | Rival


@dataclass
class _Outgoing:
    due_s: float
    members: dict[int, Member] = field(default_factory=dict)
    suspicions: list[Suspicion] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)


class Overlay:
    """As one launcher sees it. After each call ``effects`` says what is to be done, and ``due_s`` when to ask again."""

    def __init__(
        self,
        me: int,
        members: MutableMapping[int, Member],
        *,
        heartbeat_s: float,
        hold_s: float = HOLD_S,
        ring: Ring | None = None,
    ) -> None:
        self.me = me
        self.roster = Roster(me, members, heartbeat_s=heartbeat_s, ring=ring)
        self.router = Router(
            me=me, uid=self.roster.own.uid, ring=lambda: self.roster.ring, put=self._put, heartbeat_s=heartbeat_s
        )
        self._hold_s = hold_s
        self._outgoing: dict[int, _Outgoing] = {}
        self._effects: list[Effect] = []

    @property
    def linked(self) -> set[int]:
        return self.router.linked

    @property
    def due_s(self) -> float | None:
        """When ``effects`` is to be called again; None when nothing waits."""
        times = [outgoing.due_s for outgoing in self._outgoing.values()]
        judge_s = self.roster.judge_s
        return min(times if judge_s is None else [*times, judge_s], default=None)

    def desired(self) -> frozenset[int]:
        return self.roster.ring.desired(self.me)

    def link(self, member: Member, now_s: float) -> None:
        self._learn(member, now_s)
        self.roster.clear(member.node)
        self.router.link(member.node, now_s)
        outgoing = self._to(member.node, now_s)
        outgoing.members = dict(self.roster.members)
        for (node, uid, turn), by in self.roster.suspected.items():
            outgoing.suspicions += [Suspicion(node, uid, turn, reporter) for reporter in by]

    def unlink(self, node: int, now_s: float, *, parted: bool = False, resend: bool = True) -> None:
        held = self._outgoing.pop(node, None)
        if not parted:
            self.suspect(node, now_s)
        self.router.unlink(node, lost=resend, now_s=now_s)
        if held is not None and not resend:
            for letter in held.letters:
                self.router.again(node, letter, now_s)

    def suspect(self, node: int, now_s: float) -> None:
        known = self.roster.members.get(node)
        if known is not None:
            self._suspected(Suspicion(node, known.uid, known.turn, self.me), now_s)
            self._judge(now_s)

    def send(self, to: int, body: str, now_s: float) -> None:
        self.router.write(body, to=to, now_s=now_s)

    def spread(self, body: str, now_s: float, *, skip: tuple[int, ...] = ()) -> None:
        self.router.write(body, skip=skip, now_s=now_s)

    def hear(self, sender: int, packet: Packet, now_s: float) -> None:
        for member in packet.members:
            self._learn(member, now_s, sender=sender)
        for suspicion in packet.suspicions:
            self._suspected(suspicion, now_s, sender=sender)
        if packet.suspicions:
            self._judge(now_s)
        for letter in packet.letters:
            if self.router.take(letter, now_s):
                self._effects.append(Deliver(letter.origin, letter.body))

    def effects(self, now_s: float) -> list[Effect]:
        judge_s = self.roster.judge_s
        if judge_s is not None and judge_s <= now_s:
            self._judge(now_s)
        for node in [node for node, outgoing in self._outgoing.items() if outgoing.due_s <= now_s]:
            out = self._outgoing.pop(node)
            packet = Packet(tuple(out.members.values()), tuple(out.suspicions), tuple(out.letters))
            self._effects.append(Write(node, packet))
        effects, self._effects = self._effects, []
        return effects

    def _learn(self, member: Member, now_s: float, *, sender: int = -1) -> None:
        if member.node == self.me:
            self._refute(member, now_s)
            return
        before = self.roster.members.get(member.node)
        if not self.roster.learn(member):
            return
        self._tell_members(member, now_s, sender=sender)
        if before is not None and before.here and not (member.here and member.uid == before.uid):
            why = "another launcher took its place" if member.here else "reported as lost by other nodes"
            self._effects.append(Down(member.node, why))
        if member.here and not (before is not None and before.here and before.uid == member.uid):
            self._effects.append(Up(member))
            self.router.retry(now_s)

    def _refute(self, member: Member, now_s: float) -> None:
        own = self.roster.own
        if member.uid != own.uid:
            self._effects.append(Rival(member.incarnation))
        elif not member.here and member.turn >= own.turn:
            self._tell_members(self.roster.refute(member.turn), now_s)

    def _suspected(self, suspicion: Suspicion, now_s: float, *, sender: int = -1) -> None:
        own = self.roster.own
        if (suspicion.node, suspicion.uid) == (own.node, own.uid):
            if suspicion.turn >= own.turn:
                self._tell_members(self.roster.refute(suspicion.turn), now_s)
        elif self.roster.suspect(suspicion, now_s):
            self._tell(lambda to: to.suspicions.append(suspicion), now_s, sender=sender)

    def _judge(self, now_s: float) -> None:
        for member, reporters in self.roster.judged(now_s):
            nodes = f"node{'s' if len(reporters) > 1 else ''} {', '.join(map(str, reporters))}"
            self._effects.append(Down(member.node, f"reported as lost by {nodes}"))

    def _tell_members(self, member: Member, now_s: float, *, sender: int = -1) -> None:
        def put(to: _Outgoing) -> None:
            to.members[member.node] = member

        self._tell(put, now_s, sender=sender)

    def _tell(self, put: Callable[[_Outgoing], None], now_s: float, *, sender: int) -> None:
        for node in self.router.linked:
            if node != sender:
                put(self._to(node, now_s + self._hold_s))

    def _put(self, node: int, letter: Letter, now_s: float) -> None:
        held = letter.to >= 0 and letter.origin != self.me
        self._to(node, now_s + self._hold_s if held else now_s).letters.append(letter)

    def _to(self, node: int, due_s: float) -> _Outgoing:
        outgoing = self._outgoing.setdefault(node, _Outgoing(due_s))
        outgoing.due_s = min(outgoing.due_s, due_s)
        return outgoing
