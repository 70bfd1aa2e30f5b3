"""
A voter without ranks: it answers proposals and makes none, so that an even number of launchers can lose half.

Its identity stands for its memory: one that has forgotten its promises votes only once a committed view names it.
"""

from dataclasses import dataclass, replace

from holdfast_runtime.membership.messages import Accept, Accepted, Commit, Message, Prepare, Promise, Refuse
from holdfast_runtime.membership.view import Ballot, Status, Unread, View

NOTHING = View(generation=0, nodes=())


@dataclass(frozen=True)
class Witness:
    """Memory of a witness."""

    identity: int
    seat: int
    """What launchers call it: the number after that of the last of them."""
    committed: View = NOTHING
    promised: Ballot | None = None
    accepted: tuple[Ballot, Unread | View] | None = None

    @property
    def generation(self) -> int:
        return self.committed.generation + 1

    @property
    def votes(self) -> bool:
        return self.committed.witness == self.identity


def answer(witness: Witness, received: Message) -> tuple[Witness, Message | None]:
    if isinstance(received, Commit):
        return _commit(witness, received.view), None
    if isinstance(received, Prepare):
        witness = _commit(witness, received.committed)
    if not isinstance(received, Prepare | Accept) or received.generation > witness.generation:
        return witness, None
    if received.generation < witness.generation:
        return witness, Commit(witness.committed)
    if witness.promised is not None and received.ballot < witness.promised:
        return witness, Refuse(witness.generation, witness.promised)
    if isinstance(received, Accept):
        if not witness.votes:
            return witness, None
        accepted = (received.ballot, received.view)
        return replace(witness, promised=received.ballot, accepted=accepted), Accepted(
            witness.generation, received.ballot
        )
    status = Status(node=witness.seat, incarnation=witness.identity)
    promise = Promise(witness.generation, received.ballot, witness.votes, status, witness.accepted)
    return replace(witness, promised=received.ballot), promise


def _commit(witness: Witness, view: View) -> Witness:
    if view.generation <= witness.committed.generation:
        return witness
    return Witness(identity=witness.identity, seat=witness.seat, committed=view)
