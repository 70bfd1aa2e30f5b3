"""Errors that end a step or the training."""

import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from holdfast_runtime.control import LauncherLostError

TRACEBACK_LENGTH = 8000
WHAT_LENGTH = 300
PYTHON = str(Path(traceback.__file__).parent)
ADVICE_OF_GLOO = ". This is typically caused by a remote worker"
LOST = ("closed by peer", "reset by peer", "Broken pipe")
"""Texts that gloo writes behind the place in its source, ``gloo/transport/tcp/pair.cc``, when a connection ends."""


class BrokenError(RuntimeError):
    """A collective of this generation cannot be finished: somebody is gone. The step is done again in the next one."""


class DivergenceError(RuntimeError):
    """Replicas that must be equal are not. Training on would hide it, so it ends."""


class StoppedError(SystemExit):
    """The launcher has ended the job; the message says why, the exit code is the launcher's."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(exit_code)
        self.reason = reason


class TriedError(BaseException):
    """A spare has done all of a step that it can do alone. No script takes it for an error of its own."""


def described(error: BaseException) -> tuple[str, str]:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not is_library(frame.filename)] or frames
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno}, in {own[-1].name})" if own else ""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[0].partition(ADVICE_OF_GLOO)[0]
    whole = "".join(traceback.format_exception(error))
    if len(whole) > TRACEBACK_LENGTH:
        whole = f"{whole[: TRACEBACK_LENGTH // 2]}\n...\n{whole[-TRACEBACK_LENGTH // 2 :]}"
    return text[:WHAT_LENGTH] + place, whole


def line_of(error: BaseException) -> str:
    """Return the line of the program that led to an error, as `` (train.py:58)``; nothing if the error has it."""
    inner = [*traceback.walk_tb(error.__traceback__)][::-1]
    for frame, line in (*inner, *traceback.walk_stack(sys._getframe(1))):
        if not is_library(frame.f_code.co_filename) and not frame.f_code.co_filename.startswith(PYTHON):
            place = f"{Path(frame.f_code.co_filename).name}:{line}"
            return "" if place in str(error) else f" ({place})"
    return ""


def of_peers(error: BaseException) -> bool:
    seen: set[int] = set()
    before: BaseException | None = error
    while before is not None and id(before) not in seen:
        if isinstance(before, BrokenError | StoppedError | LauncherLostError):
            return True
        seen.add(id(before))
        before = before.__cause__ or before.__context__
    return False


def lost_connection(error: BaseException) -> bool:
    """Return True for the exception of a collective of gloo whose peer is gone."""
    text = str(error)
    return isinstance(error, RuntimeError) and "gloo/transport" in text and any(words in text for words in LOST)


def on_uncaught(tell: Callable[[BaseException], bool]) -> None:
    """Call a method with the exception that ends this process. If it returns True, nothing is printed."""
    method = weakref.WeakMethod(tell)
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        report = method()
        if report is None or not report(error):
            before(kind, error, trace)

    sys.excepthook = hook


def is_library(path: str) -> bool:
    return "site-packages" in path or path.startswith("<") or str(Path(__file__).parents[1]) in path
