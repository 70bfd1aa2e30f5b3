"""What can end a step or the training."""


class BrokenError(RuntimeError):
    """A collective of this epoch cannot be finished: somebody is gone. The step is done again in the next epoch."""


class DivergenceError(RuntimeError):
    """Replicas that must be equal are not. Training on would hide it, so it ends."""


class StoppedError(SystemExit):
    """The launcher has ended the job; the message says why, the exit code is the launcher's."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(exit_code)
        self.reason = reason
