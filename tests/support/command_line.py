"""The ``holdfast`` command called in the process of the test."""

import contextlib
import io
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast import cli


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Exit code and standard error of a call."""

    returncode: int
    stderr: str


def holdfast(*arguments: str, home: Path) -> Answer:
    """Call the command with a home. An error that it does not report is raised: it would be a traceback."""
    printed = io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
        patch.setenv("HOLDFAST_HOME", str(home))
        patch.setattr(sys, "argv", ["holdfast", *arguments])
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return Answer(returncode=int(ended.value.code or 0), stderr=printed.getvalue())
