import contextlib
import tempfile
from collections.abc import Iterator


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


@contextlib.contextmanager
def temporary_errors() -> Iterator[None]:
    """Raise CommandError where a temporary file cannot be made or written."""
    try:
        yield
    except OSError as error:
        place = f" in {tempfile.tempdir}" if tempfile.tempdir else ""
        raise CommandError(
            f"a temporary file cannot be written{place}: {error.strerror or error}; "
            "free some space there, or name another folder with TMPDIR=<folder>"
        ) from None
