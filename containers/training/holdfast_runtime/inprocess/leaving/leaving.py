"""The way out of a step that broke: whose fault that is, and if the training goes on."""

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.errors import BrokenError, DivergenceError
from holdfast_runtime.inprocess.leaving.missed import behind
from holdfast_runtime.inprocess.member import Member
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.step import Step
from holdfast_runtime.state import StructureError


class Leaving:
    """Of one process; without a member all errors are the program's."""

    def __init__(self, state: TrainingState, member: Member | None) -> None:
        self._state = state
        self._member = member

    def leave(self, error: BaseException, *, number: int) -> bool:
        """Leave the generation after an error before the update. True if the step can be done again."""
        member = self._member
        if isinstance(error, DivergenceError | UnsupportedError) and member is not None:
            member.reporter.refuse(error)
            return False
        if member is None or not isinstance(error, Exception):
            return False
        if isinstance(error, StopIteration):
            error = StructureError(
                f"the data of rank {member.own.rank} ended in step {number}; all ranks have as many batches: "
                "run.steps(total) with the smallest number of them, or begin the data again"
            )
        if isinstance(error, StructureError):
            member.reporter.refuse(UnsupportedError(str(error)))
            return False
        if member.is_of_peers(error):
            member.leave(f"{BrokenError.__name__}: {error}")
        else:
            member.leave(member.reporter.raised(error, step=number, where="step"))
        return True

    def leave_after_update(self, error: Exception, step: Step, member: Member) -> bool:
        """A step was left behind its update, in a collective: True if nothing of consequence stood there."""
        if isinstance(error, DivergenceError | UnsupportedError):
            member.reporter.refuse(error)
            return False
        if not member.is_of_peers(error):
            member.reporter.raised(error, step=step.number, where="after")
            return False
        missed = behind(error, step)
        for call in missed.modes:
            call()
        missing = missed.statement or self._state.changed_mode()
        if missing:
            member.reporter.refuse(
                DivergenceError(
                    f"step {step.number} was left after its update, in a collective whose peer was lost, and what "
                    f"stands behind it has not run: {missing}. Put what changes something before step.update, after "
                    "`with step:` or into Run(after_update=...), and gather a value that is used later before "
                    "step.update"
                )
            )
        return not missing
