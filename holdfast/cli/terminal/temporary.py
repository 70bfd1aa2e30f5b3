import contextlib
import tempfile
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from holdfast.cli.terminal.errors import CommandError

T = TypeVar("T")


def temporary_file(write: Callable[[BinaryIO], T]) -> tuple[BinaryIO, T]:
    """
    Return an unnamed temporary file, for the caller to close, and what ``write`` returned.

    Raises: CommandError: the file cannot be made or written.
    """
    try:
        with contextlib.ExitStack() as unless_written:
            file = unless_written.enter_context(tempfile.TemporaryFile())
            written = write(file)
            file.flush()
            unless_written.pop_all()
    except OSError as error:
        place = f" in {tempfile.tempdir}" if tempfile.tempdir else ""
        raise CommandError(
            f"a temporary file cannot be written{place}: {error.strerror or error}; "
            "free some space there, or name another folder with TMPDIR=<folder>"
        ) from None
    return file, written
