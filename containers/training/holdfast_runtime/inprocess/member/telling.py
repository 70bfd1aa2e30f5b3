"""Messages of a process to its launcher, and from it."""

import contextlib
import math
from collections.abc import Callable, Mapping

from holdfast_runtime.control import (
    Build,
    Cold,
    ControlClient,
    Deadlines,
    Fault,
    Finished,
    FromRank,
    HandOver,
    LauncherLostError,
    Leave,
    Phase,
    Progress,
    Raised,
    Stop,
    View,
)
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.errors import DivergenceError, described, line_of, of_peers, on_uncaught
from holdfast_runtime.inprocess.member.standing import Standing
from holdfast_runtime.patience import Where
from holdfast_runtime.store import GenerationStore


class Telling:
    """
    The control socket, in the words of a member.

    Args:
        on_leave: Called in the socket's thread when this process has to leave its generation.

    Raises:
        LookupError: there is no launcher.
    """

    def __init__(
        self,
        own: Standing,
        *,
        deadlines: Deadlines,
        environment: Mapping[str, str],
        on_leave: Callable[[Leave], None],
    ) -> None:
        self.is_of_making: Callable[[BaseException], bool] = lambda _error: False
        """Whether an exception that ends the program, and holds none of ours, goes back to the loss of a peer while
        models are made."""
        self.is_of_peers: Callable[[BaseException], bool] = of_peers
        """Whether one goes back to the loss of a peer, at any time."""
        self.total = 0
        """Updates that the program asks for."""
        self._own = own
        self._deadlines = deadlines
        self._hand_over = HandOver(generation=0, after_step=0)
        control = ControlClient.from_environment(environment, on_leave=on_leave, on_hand_over=self._hand_over_asked)
        if control is None:
            raise LookupError("there is no launcher")
        self._control = control
        self._reported_error: BaseException | None = None
        self._reported = ""
        on_uncaught(self.uncaught)

    def progress(self, phase: Phase, *, loss: float | None = None) -> None:
        known = loss if loss is not None and math.isfinite(loss) else None
        self.send(Progress(step=self._own.committed_step, phase=phase, loss=known, total=self.total))

    def view(self, *, needed: bool) -> View | Stop:
        """
        The next view, or the end.

        Args:
            needed: Whether the job cannot go on without this process. A spare waits as long as it takes, and ends with
                its launcher.
        """
        return self._control.receive_view(deadline_s=self._view_s(needed=needed), after=self._own.generation)

    def place(self, *, needed: bool) -> View | Stop | Build:
        return self._control.receive_place(deadline_s=self._view_s(needed=needed), after=self._own.generation)

    def broken(self, reason: str) -> None:
        if reason and reason != self._reported:
            self.send(Fault(reason=reason.splitlines()[0][:300]))

    def raised(self, error: BaseException, *, step: int, where: Where) -> str:
        """
        An exception of the program; a sentence about it.

        Args:
            where: After the update of the step, or outside of steps, the process ends; otherwise it joins to try again.
        """
        what, trace = described(error)
        self.send(Raised(step=step, generation=self._own.generation, what=what, traceback=trace, where=where))
        self._reported_error, self._reported = error, f"the program raised {what}"
        return self._reported

    def uncaught(self, error: BaseException) -> bool:
        """The program ends with an exception. True if the launcher has said all that there is to say."""
        if isinstance(error, UnsupportedError | DivergenceError):
            if error is not self._reported_error:
                with contextlib.suppress(LauncherLostError):
                    self.refuse(error)
            return True
        if self._own.built >= 0:
            if error is not self._reported_error:
                self.cold(error)
            return False
        if self.is_of_making(error):
            return True
        if error is not self._reported_error and isinstance(error, Exception):
            with contextlib.suppress(LauncherLostError):
                is_left = self.is_of_peers(error)
                self.raised(error, step=self._own.committed_step, where="outside" if is_left else "after")
                return is_left  # the launcher prints it with its advice
        return False

    def refuse(self, error: DivergenceError | UnsupportedError) -> None:
        self._reported_error = error
        reason = f"{error}{line_of(error)}" if isinstance(error, UnsupportedError) else str(error)
        if self._own.built >= 0:
            self.send(Cold(reason=reason))
        else:
            self.send(Fault(reason=reason, fatal=True))

    def cold(self, error: BaseException) -> None:
        self._reported_error = error
        with contextlib.suppress(LauncherLostError):
            self.send(Cold(reason=described(error)[0]))

    def finished(self) -> None:
        self.send(Finished(committed_step=self._own.committed_step))

    def send(self, message: FromRank) -> None:
        self._control.send(message)

    def leaves_after(self, step: int) -> bool:
        asked = self._hand_over
        return asked.generation == self._own.generation and step >= asked.after_step

    def store(self, purpose: str = "", *, deadline_s: float = 0.0) -> GenerationStore:
        """
        Of this generation, one for each purpose: groups may be made more than once in it.

        Args:
            deadline_s: Longest wait for an entry. Default: as for connecting.
        """
        return GenerationStore(
            self._control.keys,
            generation=self._own.generation,
            deadline_s=deadline_s or self._deadlines.connect,
            purpose=purpose,
        )

    def _view_s(self, *, needed: bool) -> float:
        return self._deadlines.view + self._deadlines.leave if needed else float("inf")

    def _hand_over_asked(self, message: HandOver) -> None:
        self._hand_over = message
