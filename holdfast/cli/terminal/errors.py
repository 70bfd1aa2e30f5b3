class CommandError(Exception):
    """
    Failure of a command.

    Args:
        message: What was wrong and what to do, lower case.
        exit_code: Default: 2, the request cannot be carried out as given.
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. Not KeyboardInterrupt, which the command-line library handles itself."""
