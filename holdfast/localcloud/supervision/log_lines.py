"""Log lines: one record is one line that starts with its time, whatever the message."""

import logging
import sys
from typing import IO

from holdfast_common import visible

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CONTINUED = "\n    "


class LineFormatter(logging.Formatter):
    """Escapes control characters and line breaks of messages."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record)).replace("\n", _CONTINUED)


def start_log(*, level: int = logging.INFO, pattern: str = FORMAT, stream: IO[str] | None = None) -> None:
    """Configure this process's log. Default: standard error"""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter(pattern))
    logging.basicConfig(level=level, handlers=[handler], force=True)
