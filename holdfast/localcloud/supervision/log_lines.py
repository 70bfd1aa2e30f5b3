"""Lines of a process's log: one record is one line that begins with its time, whatever a message of others holds."""

import logging
import sys
from typing import IO

from holdfast_common import visible

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CONTINUED = "\n    "


class LineFormatter(logging.Formatter):
    """Shows no character that steers a terminal, and lets no line of a message look like a record of its own."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record)).replace("\n", _CONTINUED)


def start_log(*, level: int = logging.INFO, pattern: str = FORMAT, stream: IO[str] | None = None) -> None:
    """Of this process, in place of what was set before. Default: standard error"""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter(pattern))
    logging.basicConfig(level=level, handlers=[handler], force=True)
