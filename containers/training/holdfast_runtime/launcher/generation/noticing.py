"""SIGTERM, SIGHUP and SIGQUIT: a notice to leave where this node alone can leave, else the end of the job."""

import signal
from collections.abc import Callable

from holdfast_common import node_socket
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.launcher.generation.signals import handle_signals

AGAIN_S = 0.5
PATIENCE = 20
"""So often it is tried, while a recovery is under way or ranks are not together."""
TWICE_S = 1.0
"""A second signal within this time is the first one: a scheduler sends it to all processes, a script forwards it."""


class Notice(Part):
    """
    Decides what a signal that ends programs ends: the ranks of this node, this launcher, or the job.

    Args:
        leave: Has the ranks of this node given away; the answer says whether they will be.
    """

    def __init__(
        self, context: Context, *, leave: Callable[[node_socket.Command, Callable[[node_socket.Answer], None]], None]
    ) -> None:
        super().__init__(context)
        self._elastic = bool(self._options.sizes)
        """True if the job can go on with fewer nodes, so that such a signal concerns this node alone."""
        self._alone = self._options.on_sigterm == "leave"
        """True if it concerns this node alone even where no other one can take its ranks, as in a pod."""
        self._leave = leave
        self._tried = 0
        self._counts_again = False
        """Whether the next signal is a second one."""
        self._number = signal.SIGTERM

    def listen(self) -> None:
        handle_signals(slots=self._slots, journal=self._journal, ends=self.signalled)

    def signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGINT:
            self._ending.signalled(number)
        elif self._tried and not self._counts_again:
            return
        elif self._slots.leaving or self._tried:
            # The others go on as after any loss; whether they can is for them to decide.
            reason = f"received {name} while leaving: this launcher and its ranks exit at once"
            self._ending.depart(128 + number, reason, at_once=True)
        elif self._elastic or self._alone:
            self._number = signal.Signals(number)
            self._journal.tell(f"received {name}: handing over the ranks of this node")
            self._later(TWICE_S, self._count_again)
            self._try()
        else:
            self._ending.signalled(number)

    def _count_again(self) -> None:
        self._counts_again = True

    def _try(self) -> None:
        if not self._ending.begun:
            self._tried += 1
            name = self._number.name
            self._leave(node_socket.Command(id=name, command="hand-over", reason=name), self._answered)

    def _answered(self, answer: node_socket.Answer) -> None:
        if answer.outcome == "later" and self._tried < PATIENCE:
            if self._tried == 1:
                self._journal.say(f"this node cannot leave the job yet: {answer.reason}")
            self._later(AGAIN_S, self._try)
        elif answer.outcome in ("refused", "failed", "later"):
            if self._alone:
                reason = f"received {self._number.name}, and its ranks cannot go to others: {answer.reason}"
                self._ending.depart(128 + self._number, f"{reason}; this launcher exits", at_once=True)
                return
            self._journal.say(f"this node cannot leave the job: {answer.reason}")
            self._ending.signalled(self._number)
