"""Log lines: one record is one line that starts with its time, whatever the message; in two files of bounded size."""

import contextlib
import logging
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import IO

from holdfast_common import visible

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
MOST_BYTES = 64 << 20
"""Requests of jobs cause lines, and may be many."""
_CONTINUED = "\n    "


class LineFormatter(logging.Formatter):
    """Escapes control characters and line breaks of messages."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record)).replace("\n", _CONTINUED)


class BoundedHandler(logging.StreamHandler[IO[str]]):
    """Moves a full log file to NAME.1 by copying and truncating, since other processes append to it as well."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with contextlib.suppress(OSError):  # no file, or a full disk
            descriptor = self.stream.fileno()
            known = os.fstat(descriptor)
            if stat.S_ISREG(known.st_mode) and known.st_size >= MOST_BYTES:
                _turn_over(descriptor)


def _turn_over(descriptor: int) -> None:
    own = f"/proc/self/fd/{descriptor}"
    path = Path(os.readlink(own))  # noqa: PTH115
    fresh = path.with_name(f"{path.name}.new")
    try:
        shutil.copyfile(own, fresh)
        fresh.replace(path.with_name(f"{path.name}.1"))
    finally:
        os.truncate(descriptor, 0)


def start_log(*, level: int = logging.INFO, pattern: str = FORMAT, stream: IO[str] | None = None) -> None:
    """Configure this process's log. Default: standard error"""
    handler = BoundedHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter(pattern))
    logging.basicConfig(level=level, handlers=[handler], force=True)
