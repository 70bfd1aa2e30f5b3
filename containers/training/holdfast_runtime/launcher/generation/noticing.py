"""A notice to leave, by SIGTERM: followed as soon as it can be, and the end of the job where it cannot."""

import signal
from collections.abc import Callable

from holdfast_common import node_socket
from holdfast_runtime.launcher.generation.ending import Ending
from holdfast_runtime.launcher.generation.journal import Journal

AGAIN_S = 0.5
PATIENCE = 20
"""So often it is tried, while a recovery is under way or ranks are not together."""


class Notice:
    """
    What a launcher makes of signals that end programs.

    Args:
        follows: Whether SIGTERM is a notice to this node alone: the job is elastic, and the node does not leave yet.
        leave: Has the ranks of this node given away; the answer says whether they will be.
        later: Calls something after so many seconds.
    """

    def __init__(
        self,
        *,
        ending: Ending,
        journal: Journal,
        follows: Callable[[], bool],
        leave: Callable[[node_socket.Command, Callable[[node_socket.Answer], None]], None],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._ending = ending
        self._journal = journal
        self._follows = follows
        self._leave = leave
        self._later = later
        self._tried = 0

    def signalled(self, number: int) -> None:
        """SIGINT or SIGTERM has come."""
        if number != signal.SIGTERM or not self._follows() or self._tried:
            self._ending.signalled(number)
            return
        self._journal.say("SIGTERM is a notice to leave")
        self._try()

    def _try(self) -> None:
        if not self._ending.begun:
            self._tried += 1
            self._leave(node_socket.Command(id="SIGTERM", command="hand-over", reason="SIGTERM"), self._answered)

    def _answered(self, answer: node_socket.Answer) -> None:
        if answer.outcome == "later" and self._tried < PATIENCE:
            if self._tried == 1:
                self._journal.say(f"this node cannot leave the job yet: {answer.reason}")
            self._later(AGAIN_S, self._try)
        elif answer.outcome in ("refused", "failed", "later"):
            self._journal.say(f"this node cannot leave the job: {answer.reason}")
            self._ending.signalled(signal.SIGTERM)
