"""
One update in two phases.

All gradients and all votes are added up before anything changes; whoever loses a peer until then does the step again.
Then each rank updates by itself, and needs nobody for it: a rank that dies there is rebuilt from one that did not.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Literal, NoReturn, Protocol

from torch import Tensor


class Update(Protocol):
    """Interface of a step to ``Run``, called in this order."""

    def begin(self, number: int) -> None:
        """The step begins, for the first time or again."""

    def no_sync(self) -> AbstractContextManager[None]:
        """Around each backward of the step but its last one."""
        ...

    def parts(self) -> Iterator[int]:
        """The parts of the batch that this rank does."""
        ...

    def backward(self, loss: Tensor) -> None:
        """Gradients of one part."""

    def clip(self, most: float) -> float:
        """Scale all gradients down to a norm over all ranks; what it was."""
        ...

    @property
    def is_sharded(self) -> bool:
        """True if gradients are whole without a vote. A rank that has voted can do its update alone, as it is then."""
        ...

    def mean_loss(self, loss: float) -> float:
        """The mean loss of all ranks, without a vote."""
        ...

    def reduce(self, loss: float) -> float:
        """The first phase: all gradients and votes are added up; the mean loss of all ranks."""
        ...

    def apply(self) -> None:
        """The second phase: this rank's update, which counts once it is whole."""

    def end(self) -> None:
        """The step is over."""

    def mean_loss_of(self, number: int) -> float | None:
        """The mean loss of all ranks in the newest committed step; None for another step, and where no rank has it."""
        ...

    def is_done(self, number: int) -> bool:
        """True if the update of a step is committed."""
        ...

    def survive(self, error: BaseException, *, step: "Step") -> bool:
        """True if the training goes on, with this step again or with the next one."""
        ...


class NoLoss(float):
    """The loss of a step without an update: prints as ``nan``. A decision or a sum with it raises RuntimeError."""

    def __new__(cls, number: int) -> "NoLoss":
        made = super().__new__(cls, "nan")
        made._number = number
        return made

    _number: int

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError(
            f"step {self._number} has no loss: its update is not committed, as in a step that a lost rank broke and "
            "that is repeated; use step.loss after step.update, and behind `with step:` under `if step.done:`"
        )

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __hash__ = float.__hash__


class Step:
    """
    ``with step:`` around all that belongs to one update.

    Leaving it after the loss of a peer is no error: the loop yields the same step again, or, when some rank had
    finished it, the next one. Code after the ``with`` runs for a step that was left, too; ``done`` tells it.
    """

    def __init__(self, update: Update, number: int, *, trial: bool = False) -> None:
        self.number = number
        """Updates that were finished before this one."""
        self.trial = trial
        """Whether it counts for nothing: a spare does it alone, up to ``update``, to be warm when it gets a rank."""
        self._update = update
        self._loss: float | None = None
        self._reduced = False
        self._updated = False
        self._noted = 0.0

    @property
    def loss(self) -> float:
        """
        Mean over all ranks, after ``update``.

        Of a step without an update, such as one that was left, it prints as ``nan``, and is refused in comparisons and
        sums: ranks that decide on it would part.
        """
        loss = self._update.mean_loss_of(self.number) if self._loss is None and self.done else self._loss
        if loss is None:
            return float("nan") if self.trial else NoLoss(self.number)
        return loss

    @property
    def done(self) -> bool:
        """True once the update is committed; False after a step that was left and will begin again."""
        return not self.trial and self._update.is_done(self.number)

    def __enter__(self) -> "Step":
        self._update.begin(self.number)
        return self

    def parts(self) -> Iterator[int]:
        """
        The parts of the step's batch that are this rank's, one after the other: its logical ranks in an elastic job.

        For each of them the script does forward, and ``backward`` of this step. Without logical ranks it is one part,
        ``Run.data_rank``.
        """
        yield from self._update.parts()

    def backward(self, loss: Tensor) -> None:
        """Gradients of one part; its loss counts for the mean."""
        self._noted += float(loss.detach())
        self._update.backward(loss)

    def clip(self, most: float) -> float:
        """
        Scale the gradients of a sharded model down to a norm, after all parts and before ``update``; what it was.

        With logical ranks the norm has the same bits at any number of ranks.
        """
        return self._update.clip(most)

    def reduce(self, loss: Tensor | float | None = None) -> float:
        """
        Finish the reduction and agree; the mean loss of all ranks.

        For scripts that do something with whole gradients, such as clipping them, between this and ``update``. Others
        need not call it. Gradients of a sharded model are whole without it: there it is the mean alone, and ``update``
        agrees, so that nobody finishes a step whose gradients the script has yet to change.

        Args:
            loss: Of this rank's batch, for the mean. Default: what ``backward`` was given, or 0.
        """
        self._noted = self._own_loss(loss)
        if self._update.is_sharded:
            self._loss = loss = self._update.mean_loss(self._noted)
        else:
            self._loss, self._reduced = (loss := self._update.reduce(self._noted)), True
        return loss

    def update(self, loss: Tensor | float | None = None) -> float:
        """
        Reduce, unless ``reduce`` has done it, then update and commit; the mean loss of all ranks.

        What stands after it in the step is part of the step's end as well. But where a peer is lost in a collective
        there, the rest does not run: then the job ends and names the statement, unless it is of no consequence.

        Args:
            loss: Of this rank's batch, for the mean. Default: what ``backward`` was given, or 0.
        """
        if self._updated:
            raise RuntimeError(f"step {self.number} has had its update; call step.update(loss) once in each step")
        if not self._reduced:
            self._loss = self._update.reduce(self._own_loss(loss))
        self._update.apply()
        self._updated = True
        return self.loss

    def _own_loss(self, loss: Tensor | float | None) -> float:
        given = self._noted if loss is None else loss
        return float(given.detach()) if isinstance(given, Tensor) else given

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Around every backward of the step but its last one."""
        with self._update.no_sync():
            yield

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False] | bool:
        if error is None:
            if not self._updated:
                raise RuntimeError(f"step {self.number} ended without step.update(loss); call it after backward")
            self._update.end()
            return False
        survives = self._update.survive(error, step=self)
        if not self._updated:
            self._loss = None
        return survives
