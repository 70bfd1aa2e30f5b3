"""
Agreement on the next view: single-decree Paxos (Lamport, "Paxos Made Simple", 2001), one instance for each
generation, as a state machine that takes one event and gives the next state and actions.

Each launcher is proposer and acceptor. A proposer numbers its proposal with a ballot and asks for promises
(``Prepare``); an acceptor promises (``Promise``) to accept nothing below that ballot and tells what it has accepted
before. Once a majority has promised, the proposer has the view of the highest of those ballots accepted, or, where
there is none, one of its own choice (``Accept``); a view that a majority has accepted (``Accepted``) is chosen, and
``Commit`` tells all.

Any launcher may propose, so there is none whose loss stops the job. A view is committed by a majority of the launchers
that the job expects, not of those that happen to be reachable, so two halves of a cut network never both go on. A
launcher that replaced another votes only once a committed view names it: what its predecessor had promised is unknown.

Where the number of launchers is even there is a seat more, for a witness (``witness``). The majority is the same with
and without one, so that launchers that see it and launchers that do not still agree on what a majority is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast_runtime.membership.messages import Accept, Accepted, Commit, Message, Prepare, Promise, Refuse
from holdfast_runtime.membership.view import Ballot, Status, Unread, View


@dataclass(frozen=True)
class Send:
    """Send a message; the link may lose it."""

    to: int
    message: Message


@dataclass(frozen=True)
class Leave:
    """Have the local ranks leave their collectives and report; then call ``ready``."""

    generation: int
    reason: str


@dataclass(frozen=True)
class Install:
    """The view is committed: give it to the local ranks."""

    view: View


@dataclass(frozen=True)
class SetTimer:
    """
    Call ``timer`` with this name later, instead of an earlier call of that name that is still to come.

    ``turn`` 0 is as soon as possible, each further one a delay longer; GIVE_UP and MEET have deadlines of their own.
    """

    name: str
    turn: int


@dataclass(frozen=True)
class Stop:
    """No view can follow: end the job here, and say why."""

    reason: str


Action = Send | Leave | Install | SetTimer | Stop
Decide = Callable[[View, tuple[Status, ...]], View | str]
"""Next view for a committed one and the reports of the launchers in reach; a text is the reason for none (yet)."""

PROPOSE, GATHER, GIVE_UP, MEET = "propose", "gather", "give up", "meet"


@dataclass(frozen=True)
class Node:
    me: int
    size: int
    """Launchers that the job expects."""
    incarnation: int
    """What views call it."""
    committed: View
    up: frozenset[int]
    """Launchers in reach, without this one."""
    called: tuple[int, ...]
    """By node, what views call the launcher that was found there last; -1 for one that was there from the start."""
    status: Status | None = None
    """The local processes, once all of them have left their collectives."""
    requested: str = ""
    """Reason for the next view; empty if none is requested."""
    promised: Ballot | None = None
    accepted: tuple[Ballot, Unread | View] | None = None
    waiting: Prepare | None = None
    """A proposal that is answered as soon as the local processes are ready."""
    ballot: Ballot | None = None
    promises: tuple[Promise, ...] = ()
    proposal: View | None = None
    accepts: frozenset[int] = frozenset()
    refusal: str = ""
    """Why no view could be chosen the last time."""
    witness: int = -1
    """Identity of the witness in reach; -1 without one."""

    @property
    def generation(self) -> int:
        return self.committed.generation + 1

    @property
    def majority(self) -> int:
        return self.size // 2 + 1

    @property
    def votes(self) -> bool:
        return self.committed.nodes[self.me] == self.incarnation

    def is_named(self, peer: int) -> bool:
        name = self.committed.nodes[peer]
        return peer in self.up and name >= 0 and (not self.committed.generation or self.called[peer] in (name, -1))

    @property
    def gone(self) -> list[int]:
        others = [peer for peer, name in enumerate(self.committed.nodes) if name >= 0 and peer != self.me]
        return [peer for peer in others if not self.is_named(peer)] if self.committed.generation and self.votes else []

    @property
    def awaited(self) -> frozenset[int]:
        if not self.requested or self.ballot is None:
            return frozenset()
        heard = {promise.status.node for promise in self.promises} if self.proposal is None else self.accepts
        return self.up - heard

    @property
    def turn(self) -> int:
        return sum(self.is_named(other) for other in self.up if other < self.me)

    @property
    def voters(self) -> int:
        launchers = sum(self.committed.nodes[other] >= 0 for other in self.up) + self.votes
        return launchers + (0 <= self.witness == self.committed.witness)


def start(
    *, me: int, size: int, incarnation: int = 0, identity: int | None = None, up: frozenset[int] = frozenset()
) -> Node:
    """
    A launcher at its start. The first launchers of a job vote on its first view.

    Args:
        incarnation: 0 for one that knows of no predecessor.
        identity: what views call it. No two launchers of a node may ever have the same, because one without its
            predecessor's memory would vote as that. The incarnation where it is left out.
    """
    named = incarnation if identity is None else identity
    nodes = tuple(named if node == me and incarnation == 0 else 0 for node in range(size))
    first = View(generation=0, nodes=nodes)
    return Node(me=me, size=size, incarnation=named, committed=first, up=up - {me}, called=(-1,) * size)


def trouble(node: Node, reason: str) -> tuple[Node, list[Action]]:
    """A local process died, a rank reports a broken collective, or the job begins: request another view."""
    if node.requested:
        return node, []
    node = replace(node, requested=reason)
    actions: list[Action] = [] if node.status is not None else [Leave(node.generation, reason)]
    return node, [*actions, SetTimer(PROPOSE, node.turn), SetTimer(GIVE_UP, 0)]


def lost(node: Node, peer: int) -> tuple[Node, list[Action]]:
    node = replace(node, up=node.up - {peer})
    if node.committed.nodes[peer] >= 0:
        node, actions = trouble(node, f"node {peer} is lost")
    else:
        actions = []
    if node.ballot is not None and node.proposal is None and _all_heard(node):
        return node, [*actions, SetTimer(GATHER, 0)]
    return node, actions


def found(node: Node, peer: int, identity: int) -> tuple[Node, list[Action]]:
    called = (*node.called[:peer], identity, *node.called[peer + 1 :])
    node = replace(node, up=node.up | {peer}, called=called)
    if not node.requested:
        return node, []
    if node.ballot is not None:
        # The proposal waits for all in reach.
        asked = [Send(peer, Prepare(node.generation, node.ballot, node.committed))] if node.proposal is None else []
        return node, [*asked, SetTimer(PROPOSE, 1)]
    return node, [SetTimer(PROPOSE, min(node.turn, 1))]


def witness_found(node: Node, identity: int) -> tuple[Node, list[Action]]:
    if node.size % 2:
        return node, []  # one more vote would be one more that is needed
    return replace(node, witness=identity), [SetTimer(PROPOSE, 0)] if node.requested else []


def witness_lost(node: Node) -> Node:
    return replace(node, witness=-1)


def ready(node: Node, status: Status) -> tuple[Node, list[Action]]:
    """All local processes have left their collectives; this is how they are."""
    node = replace(node, status=status)
    if node.waiting is None:
        return node, []
    prepare = node.waiting
    return _promise(replace(node, waiting=None), prepare.ballot.node, prepare)


def timer(node: Node, name: str, *, decide: Decide) -> tuple[Node, list[Action]]:
    if name == MEET:
        return trouble(node, f"node {node.gone[0]} is lost") if node.gone else (node, [])
    if not node.requested:
        return node, []
    if name == GIVE_UP:
        return node, [Stop(f"{node.requested}; {node.refusal or _few(node)}")]
    return _propose(node) if name == PROPOSE else _conclude(node, decide=decide)


def message(node: Node, sender: int, received: Message, *, decide: Decide) -> tuple[Node, list[Action]]:
    if isinstance(received, Commit):
        return _commit(node, received.view)
    if isinstance(received, Prepare) and received.committed.generation > node.committed.generation:
        node, actions = _commit(node, received.committed)
        node, more = message(node, sender, received, decide=decide)
        return node, [*actions, *more]
    if received.generation < node.generation:
        asks = isinstance(received, Prepare | Accept)
        return node, [Send(sender, Commit(node.committed))] if asks else []
    if received.generation > node.generation:
        return node, []  # its Prepare, which explains it, was lost; it will be repeated
    if isinstance(received, Prepare):
        return _promise(node, sender, received)
    if isinstance(received, Accept):
        return _accept(node, sender, received)
    if isinstance(received, Refuse):
        return _refused(node, received)
    if received.ballot != node.ballot:
        return node, []
    if isinstance(received, Promise):
        return _promised(node, received, decide=decide)
    return _accepted(node, sender)


def _few(node: Node) -> str:
    if node.status is None and node.voters >= node.majority:
        return "processes of this node are neither ready nor ended"
    voters = sum(promise.voter for promise in node.promises if promise.status.node < node.size) or int(node.votes)
    launchers = f"{voters} of {node.size} launchers that may vote"
    if node.size % 2:
        return f"{launchers} are in reach and {node.majority} are needed"
    present = any(promise.voter for promise in node.promises if promise.status.node == node.size)
    return f"{launchers} and {'the' if present else 'no'} witness are in reach, and {node.majority} votes are needed"


def _propose(node: Node) -> tuple[Node, list[Action]]:
    highest = max((ballot.round for ballot in (node.promised, node.ballot) if ballot is not None), default=0)
    ballot = Ballot(highest + 1, node.me)
    node = replace(node, ballot=ballot, promises=(), proposal=None, accepts=frozenset())
    prepare = Prepare(node.generation, ballot, node.committed)
    everyone = [*sorted(node.up | {node.me}), *_seat(node)]
    return node, [*(Send(other, prepare) for other in everyone), SetTimer(GATHER, 1), SetTimer(PROPOSE, 2 + node.me)]


def _seat(node: Node) -> tuple[int, ...]:
    return (node.size,) if node.witness >= 0 else ()


def _promise(node: Node, sender: int, prepare: Prepare) -> tuple[Node, list[Action]]:
    if node.promised is not None and prepare.ballot < node.promised:
        return node, [Send(sender, Refuse(node.generation, node.promised))]
    node = replace(node, promised=prepare.ballot)
    actions: list[Action] = []
    if not node.requested:
        node, actions = trouble(node, f"node {sender} asks for another view")
    if node.status is None:
        return replace(node, waiting=prepare), actions
    promise = Promise(node.generation, prepare.ballot, node.votes, node.status, node.accepted)
    return node, [*actions, Send(sender, promise)]


def _refused(node: Node, refuse: Refuse) -> tuple[Node, list[Action]]:
    if node.ballot is None or refuse.promised <= node.ballot:
        return node, []
    known = max(refuse.promised, node.promised or refuse.promised)
    return replace(node, promised=known, ballot=None, promises=(), proposal=None), []


def _promised(node: Node, promise: Promise, *, decide: Decide) -> tuple[Node, list[Action]]:
    if node.proposal is not None or any(known.status.node == promise.status.node for known in node.promises):
        return node, []
    node = replace(node, promises=(*node.promises, promise))
    return _conclude(node, decide=decide) if _all_heard(node) else (node, [])


def _all_heard(node: Node) -> bool:
    if len(node.promises) <= len(node.up):
        return False
    return {known.status.node for known in node.promises} >= node.up | {node.me}


def _conclude(node: Node, *, decide: Decide) -> tuple[Node, list[Action]]:
    """Choose the view, once a majority has promised and the others have answered or had their time."""
    if node.ballot is None or node.proposal is not None:
        return node, []
    ballot = node.ballot
    if sum(promise.voter for promise in node.promises) < node.majority:
        return node, []
    before = [promise.accepted for promise in node.promises if promise.voter and promise.accepted is not None]
    if before:
        chosen: View | str = max(before, key=lambda item: item[0])[1].read()
    else:
        statuses = [promise.status for promise in node.promises if promise.status.node < node.size]
        chosen = decide(node.committed, tuple(sorted(statuses, key=lambda status: status.node)))
        if isinstance(chosen, View):
            # One that is out of reach keeps its vote, because it still knows what it promised.
            chosen = replace(chosen, witness=node.witness if node.witness >= 0 else node.committed.witness)
    if isinstance(chosen, str):
        return replace(node, refusal=chosen), []
    node = replace(node, proposal=chosen, accepts=frozenset())
    accept = Accept(node.generation, ballot, chosen)
    return node, [Send(promise.status.node, accept) for promise in node.promises]


def _accept(node: Node, sender: int, accept: Accept) -> tuple[Node, list[Action]]:
    if not node.votes:
        return node, []
    if node.promised is not None and accept.ballot < node.promised:
        return node, [Send(sender, Refuse(node.generation, node.promised))]
    node = replace(node, promised=accept.ballot, accepted=(accept.ballot, accept.view))
    return node, [Send(sender, Accepted(node.generation, accept.ballot))]


def _accepted(node: Node, sender: int) -> tuple[Node, list[Action]]:
    node = replace(node, accepts=node.accepts | {sender})
    if node.proposal is None or len(node.accepts) < node.majority:
        return node, []
    view = node.proposal
    others, commit = [*sorted(node.up), *_seat(node)], Commit(view)
    node, actions = _commit(node, view)
    return node, [*(Send(other, commit) for other in others), *actions]


def _commit(node: Node, view: View) -> tuple[Node, list[Action]]:
    if view.generation <= node.committed.generation:
        return node, []
    node = Node(
        me=node.me,
        size=node.size,
        incarnation=node.incarnation,
        committed=view,
        up=node.up,
        called=node.called,
        witness=node.witness,
    )
    actions: list[Action] = [Install(view)]
    # One that this launcher has never met may be about to come into reach; if it is lost, those that met it see that.
    lost_ones = [peer for peer in node.gone if peer in node.up or node.called[peer] == view.nodes[peer]]
    if lost_ones:
        node, more = trouble(node, f"node {lost_ones[0]} is lost")
        actions += more
    elif node.gone:
        actions.append(SetTimer(MEET, 0))
    return node, actions
