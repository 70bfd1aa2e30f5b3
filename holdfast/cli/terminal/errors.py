"""How a command ends early: a message for the user and an exit code, never a traceback."""


class CommandError(Exception):
    """
    A command cannot do what was asked.

    Args:
        message: What was wrong and what to do about it, lower case.
        exit_code: Default: 2, the request could not be carried out as given.
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. Not KeyboardInterrupt, which the command-line library would answer with words of its own."""
