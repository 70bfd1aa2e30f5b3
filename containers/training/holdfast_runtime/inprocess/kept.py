"""The snapshots of a sharded job: of which state, where they are kept, and when the next one is due."""

from collections.abc import Mapping, Sequence

from holdfast_runtime.control import View
from holdfast_runtime.groups import Facts, agreed_snapshot, alike
from holdfast_runtime.inprocess.state import Stateful, TrainingState
from holdfast_runtime.snapshots import Agree, Place, Shard, SnapshotError, Snapshots


class Seed:
    """Of the random numbers of all steps, as state that goes with a snapshot."""

    def __init__(self, state: TrainingState) -> None:
        self._state = state

    def state_dict(self) -> dict[str, int]:
        return {"seed": self._state.seed}

    def load_state_dict(self, state: Mapping[str, int], /) -> None:
        self._state.seed = state["seed"]


class Kept:
    """
    Snapshots as a run has them.

    Args:
        every: Updates from one to the next.
        transfer_s: Longest that one may travel.
    """

    def __init__(self, state: TrainingState, *, every: int, transfer_s: float) -> None:
        self.every = every
        self._state = state
        self._snapshots = Snapshots(every=every, transfer_s=transfer_s)

    @property
    def port(self) -> int:
        """Where others bring and fetch theirs."""
        return self._snapshots.port

    def held(self) -> list[tuple[int, int]]:
        """Rank and step of all in this process's memory."""
        return self._snapshots.held()

    def join(self, facts: Sequence[Facts], view: View, *, agree: Agree) -> None:
        """Begin a generation."""
        state = self._state
        extra: dict[str, Stateful] = {"holdfast seed": Seed(state), **state.added}
        if state.scheduler is not None:
            extra["holdfast scheduler"] = state.scheduler
        self._snapshots.join(
            Shard(state.model, state.optimizer, extra),
            rank=view.rank,
            places=[Place(fact.node, fact.host, fact.keeper) for fact in facts],
            generation=view.epoch,
            resume_step=view.resume_step,
            agreed_step=agreed_snapshot(facts, until=view.resume_step),
            agree=agree,
            alike=alike(facts),
        )

    def leave(self) -> None:
        """End the generation at once; what is whole stays."""
        self._snapshots.leave()

    def restore(self, step: int, donors: Sequence[int]) -> None:
        """Have the state of a step, from here or from a keeper. Raises ConnectionError when nobody gives it whole."""
        try:
            self._snapshots.restore(step, donors)
        except SnapshotError as error:
            raise ConnectionError(str(error)) from error
        self._state.noted_nothing()

    def take(self, step: int) -> None:
        """Begin one, on all ranks at the same step."""
        self._snapshots.take(step)

    def before_update(self) -> None:
        """Wait until what the update changes has been copied."""
        self._snapshots.before_update()

    def after_update(self, step: int) -> None:
        """Begin one if it is due."""
        self._snapshots.after_update(step)
