"""
Models of a sharded job, made together in real groups.

All ranks that begin a job have no model yet, or all have one: if a rank is lost in between, all begin again.
"""

from holdfast_runtime.control import Deadlines, View
from holdfast_runtime.inprocess.errors import BrokenError, StoppedError
from holdfast_runtime.inprocess.member.peers import Peers, with_peers
from holdfast_runtime.inprocess.member.standing import Standing
from holdfast_runtime.inprocess.member.telling import Telling

NOTICE_S = 2.0
"""Longest time from an error of the script to the launcher's report of a lost peer, on a busy machine."""


class Making:
    """Of one process. Its waits are as long as ranks may take to become ready at the start of a job."""

    def __init__(self, own: Standing, *, peers: Peers, reporter: Telling, deadlines: Deadlines) -> None:
        self.begun: View | None = None
        """In which this process makes its model, until its groups end."""
        self._all_made_in = 0
        """The generation."""
        self._own = own
        self._peers = peers
        self._reporter = reporter
        self._deadlines = deadlines
        reporter.is_of_making = self._is_of_peers

    def open(self, view: View) -> None:
        """Groups in which the script can make its model. Raises BrokenError."""
        if not _is_together(view):
            self._peers.open_alone()
        elif others := self._others("models", has_one=False):
            raise BrokenError(f"{_ranks(others)} made a model before, and all begin again")
        else:
            self._peers.open(self._reporter.store("make"))
        self.begun = view

    def check(self, view: View) -> None:
        if not _is_together(view) or view.generation == self._all_made_in:
            return
        if others := self._others("models", has_one=True):
            reason = f"{_ranks(others)} has no model yet: all begin again"
            self._reporter.broken(reason)
            raise StoppedError(reason, 1)

    def until_all_have(self, view: View) -> View:
        """
        Wait for those that are still at it, and return the view.

        A rank that ended its groups while another still connects would break that one's connections.

        Raises:
            BrokenError: one of them is gone.
        """
        self.begun = None
        if _is_together(view):
            self._others("made", has_one=True)
            self._all_made_in = view.generation
        return view

    def _others(self, purpose: str, *, has_one: bool) -> list[int]:
        with with_peers("not all ranks have reported whether they have a model"):
            store = self._reporter.store(purpose, deadline_s=self._deadlines.start)
            store.set(str(self._own.rank), str(int(has_one)))
            return [rank for rank in range(self._own.world_size) if (store.get(str(rank)) == b"1") != has_one]

    def _is_of_peers(self, error: BaseException) -> bool:
        is_possible = self.begun is not None and isinstance(error, RuntimeError | OSError)
        return is_possible and self._peers.wait_for_leave(within_s=NOTICE_S)


def _is_together(view: View) -> bool:
    return view.plan.source == "fresh" and view.world_size > 1


def _ranks(found: list[int]) -> str:
    return f"rank {', '.join(map(str, found))}"
