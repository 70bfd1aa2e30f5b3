"""
Members of the overlay at one launcher.

A lost connection raises a suspicion, which all launchers receive. Two are believed, as one launcher may have lost its
own connection; a single one is believed if it is not refuted in time, or at once if no other could confirm it. A
suspected launcher refutes with a newer turn (SWIM, Das et al. 2002).
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from holdfast_runtime.overlay.messages import Member, Suspicion
from holdfast_runtime.overlay.ring import Ring

REPORTERS = 2
"""So many are believed."""
PATIENCE = 3.0
"""Heartbeat deadlines in which a launcher can refute the report of a single one."""

Subject = tuple[int, str, int]


class Roster:
    def __init__(
        self,
        me: int,
        members: MutableMapping[int, Member],
        *,
        heartbeat_s: float,
        ring: Ring | None = None,
    ) -> None:
        self.me = me
        self.members = members
        self.ring = ring or Ring(node for node, member in members.items() if member.here)
        self._patience_s = PATIENCE * heartbeat_s
        self._reporters: dict[Subject, dict[int, float]] = {}

    def copy(self, members: MutableMapping[int, Member] | None = None) -> "Roster":
        copied = dict(self.members) if members is None else members
        made = Roster(self.me, copied, heartbeat_s=self._patience_s / PATIENCE, ring=self.ring.copy())
        made._reporters = {subject: dict(reporters) for subject, reporters in self._reporters.items()}
        return made

    @property
    def state(self) -> tuple[object, ...]:
        reporters = {subject: frozenset(by) for subject, by in self._reporters.items()}
        return frozenset(self.members.values()), frozenset(reporters.items())

    @property
    def own(self) -> Member:
        return self.members[self.me]

    @property
    def suspected(self) -> Mapping[Subject, Mapping[int, float]]:
        return self._reporters

    @property
    def judge_s(self) -> float | None:
        """When a single suspicion is to be believed; None while there is none."""
        return min((min(by.values()) + self._patience_s for by in self._reporters.values()), default=None)

    def is_here(self, node: int) -> bool:
        member = self.members.get(node)
        return member is not None and member.here

    def learn(self, member: Member) -> bool:
        known = self.members.get(member.node)
        if known is not None and (member.age <= known.age or _is_rival(member, known)):
            return False
        if known is not None and (known.uid, known.turn) != (member.uid, member.turn):
            self._reporters.pop((known.node, known.uid, known.turn), None)
        self.members[member.node] = member
        if member.here:
            self.ring.add(member.node)
        else:
            self._forget(member)
        return True

    def refute(self, turn: int) -> Member:
        self.members[self.me] = replace(self.own, turn=max(turn, self.own.turn) + 1)
        return self.own

    def suspect(self, suspicion: Suspicion, now_s: float) -> bool:
        known = self.members.get(suspicion.node)
        if known is None or not known.here or (known.uid, known.turn) != (suspicion.uid, suspicion.turn):
            return False
        if not self.is_here(suspicion.reporter):
            return False  # who was cut off has lost its connections to the others, and not they theirs
        reporters = self._reporters.setdefault((suspicion.node, suspicion.uid, suspicion.turn), {})
        if suspicion.reporter in reporters or len(reporters) >= REPORTERS:
            return False
        reporters[suspicion.reporter] = now_s
        return True

    def clear(self, node: int) -> None:
        for subject, by in [*self._reporters.items()]:
            if subject[0] == node and by.pop(self.me, None) is not None and not by:
                del self._reporters[subject]

    def judged(self, now_s: float) -> list[tuple[Member, list[int]]]:
        found = []
        for (node, _, _), by in [*self._reporters.items()]:
            believed = len(by) >= REPORTERS or (self.me in by and self._is_alone())
            if believed or now_s >= min(by.values()) + self._patience_s:
                gone = replace(self.members[node], here=False)
                self.learn(gone)
                found.append((gone, sorted(by)))
        return found

    def _is_alone(self) -> bool:
        suspected = {node for (node, _, _), by in self._reporters.items() if self.me in by}
        return len(self.ring) <= 1 + len(suspected)

    def _forget(self, member: Member) -> None:
        self.ring.remove(member.node)
        self._reporters.pop((member.node, member.uid, member.turn), None)


def _is_rival(member: Member, known: Member) -> bool:
    return member.uid != known.uid and member.incarnation == known.incarnation
