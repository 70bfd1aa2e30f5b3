"""Work of the program between two steps that needs all ranks, such as a validation: repeated by all if one is lost."""

import time
from collections.abc import Callable

from holdfast_runtime.inprocess.member import PEERS, Member
from holdfast_runtime.inprocess.state import TrainingState

REPORT_EVERY_S = 5.0
"""A validation may take longer than a rank may be silent."""


class Between:
    """
    Caller of the function that a loop has given to ``run.steps``.

    All ranks return to the state in front of it, so each rank of a new generation calls it again for the same update:
    also those that had ended it, and the process that takes over a rank.

    Args:
        settle: Has model and random numbers as a step finds them.
    """

    def __init__(self, state: TrainingState, member: Member | None, *, settle: Callable[[], None]) -> None:
        self.function: Callable[[int], object] | None = None
        self.runs = False
        self._state = state
        self._member = member
        self._settle = settle
        self._done = (-1, 0)
        """Generation and number of updates of the last call."""
        self._reported_s = 0.0
        self._computes = False
        """True if it was left in the model, and not in a collective."""

    def run(self, finished: int) -> None:
        """
        Call the function after an update, unless this generation has done so or a loop has ended there.

        Raises:
            BrokenError: a rank is lost, or what the function raises.
        """
        member = self._member
        now = (member.own.generation if member is not None else 0, finished)
        if self.function is None or self._done == now or finished <= self._state.settled:
            return
        if member is not None:
            self._state.begin_between()
        self.runs, self._computes, self._reported_s = True, False, time.monotonic()
        try:
            self.function(finished)
        except PEERS as error:
            if member is not None and not self._computes:
                member.report_hang(error, step=finished)
            raise
        finally:
            self.runs = False
        if member is not None and member.own.world_size > 1:
            member.reporter.progress("between")
            member.peers.all_here()
        self._done = now
        if member is not None:
            self._state.end_between()
        self._settle()

    def look(self) -> None:
        """The function uses the model: see whether a rank is lost, and report progress. Raises BrokenError."""
        assert self._member is not None
        self._computes = self._member.peers.must_leave
        self._member.peers.check()
        if time.monotonic() - self._reported_s > REPORT_EVERY_S:
            self._reported_s = time.monotonic()
            self._member.reporter.progress("other")
