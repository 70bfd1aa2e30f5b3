"""
One update in two phases.

All gradients and all votes are added up before anything changes; whoever loses a peer until then does the step again.
Then each rank updates by itself, and needs nobody for it: a rank that dies there is rebuilt from one that did not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from torch import Tensor

if TYPE_CHECKING:
    from holdfast_runtime.inprocess.run import Run


class Step:
    """
    ``with step:`` around all that belongs to one update.

    Leaving it after the loss of a peer is no error: the loop yields the same step again, or, when some rank had
    finished it, the next one.
    """

    def __init__(self, run: "Run", number: int) -> None:
        self.number = number
        """Updates that were finished before this one."""
        self.loss = float("nan")
        """Mean over all ranks, after ``update``."""
        self._run = run
        self._reduced = False
        self._updated = False

    def __enter__(self) -> "Step":
        self._run._begin(self.number)
        return self

    def reduce(self, loss: Tensor | float = 0.0) -> float:
        """
        Finish the reduction and agree; the mean loss of all ranks.

        For scripts that do something with whole gradients, such as clipping them, between this and ``update``. Others
        need not call it.

        Args:
            loss: Of this rank's batch, for the mean. Default: 0.
        """
        self.loss = self._run._reduce(float(loss.detach()) if isinstance(loss, Tensor) else loss)
        self._reduced = True
        return self.loss

    def update(self, loss: Tensor | float = 0.0) -> float:
        """
        Reduce, unless ``reduce`` has done it, then update and commit; the mean loss of all ranks.

        What is in ``Run(state=...)`` has to be changed before this, or in a hook of the optimizer: what comes after is
        not part of the step, and a process that takes part in a recovery there does not finish it.

        Args:
            loss: Of this rank's batch, for the mean. Default: 0.
        """
        if not self._reduced:
            self.reduce(loss)
        self._run._apply()
        self._updated = True
        return self.loss

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Around every backward of the step but its last one."""
        with self._run._reducer.no_sync():
            yield

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False] | bool:
        if error is None:
            if not self._updated:
                raise RuntimeError(f"step {self.number} ended without step.update(loss); call it after backward")
            self._run._end()
            return False
        return self._run._survive(error, number=self.number)
