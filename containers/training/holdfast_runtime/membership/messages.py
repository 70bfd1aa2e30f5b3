"""Messages about a view. One instance of single-decree Paxos per generation."""

from dataclasses import dataclass

from holdfast_runtime.membership.view import Ballot, Status, Unread, View


@dataclass(frozen=True)
class Prepare:
    """I want to propose the view of this generation. ``committed`` brings laggards up to date."""

    generation: int
    ballot: Ballot
    committed: View


@dataclass(frozen=True)
class Promise:
    """I shall accept nothing below this ballot; this is how my processes are, and what I have accepted."""

    generation: int
    ballot: Ballot
    voter: bool
    status: Status
    accepted: tuple[Ballot, Unread | View] | None


@dataclass(frozen=True)
class Refuse:
    """I have promised a higher ballot."""

    generation: int
    promised: Ballot


@dataclass(frozen=True)
class Accept:
    """Accept this view, unless you have promised a higher ballot."""

    generation: int
    ballot: Ballot
    view: Unread | View


@dataclass(frozen=True)
class Accepted:
    """I have accepted it."""

    generation: int
    ballot: Ballot


@dataclass(frozen=True)
class Commit:
    """A majority has accepted this view."""

    view: View


Message = Prepare | Promise | Refuse | Accept | Accepted | Commit
