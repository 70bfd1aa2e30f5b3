"""Output of commands: one console for people, plain JSON for programs, progress steps."""

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, is_dataclass
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from holdfast_common import visible

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType
    from rich.status import Status  # what draws a spinner is slow to load, and most commands have no step

PIPE_WIDTH = 160
"""Columns where there is no terminal to say how many it has."""


class UncutConsole(Console):
    """Console that never cuts lines, and escapes control characters in texts of others."""

    aside = False
    """Whether all of it goes to standard error, because standard output is for a program that reads JSON."""

    @property
    def file(self) -> IO[str]:
        return sys.stderr if self.aside else super().file

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})

    def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterable[Segment]":
        for segment in super().render(renderable, options):
            if segment.control or (shown := visible(segment.text)) == segment.text:
                yield segment
            else:
                yield Segment(shown, segment.style)


def stream_width(stream: IO[str]) -> int | None:
    """Width of a pipe; None: that of the terminal or of ``COLUMNS``."""
    return None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH


# No markup: what is printed holds names that others chose, and "[/x]" in one would be an error.
console = UncutConsole(markup=False, emoji=False, highlight=False, width=stream_width(sys.stdout))
# Whole lines for a program; a terminal would break them within a word.
error_console = UncutConsole(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=not sys.stderr.isatty())


@contextlib.contextmanager
def json_alone() -> Iterator[None]:
    """Redirect the console to standard error."""
    console.aside = True
    try:
        yield
    finally:
        console.aside = False


def print_line(text: str) -> None:
    """Print without rich: faster, with control characters escaped."""
    print(visible(text))


def print_output(line: str) -> None:
    """Print a program's line; escape control characters on a terminal."""
    print(visible(line) if sys.stdout.isatty() else line, flush=True)


def print_json(value: Any) -> None:
    """Print one JSON document; numbers that JSON lacks become null."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    print(json.dumps(_finite(plain), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


class Step:
    """Step in progress; ``update`` replaces the note beside the spinner."""

    def __init__(self, *, title: str, status: "Status | None") -> None:
        self._title, self._status = title, status
        self._started = time.monotonic()
        self.note = ""

    def update(self, note: str) -> None:
        self.note = note
        if self._status is not None:
            self._status.update(Text.assemble(self._title, "  ", (note, "dim"), ("  " + self._elapsed(), "dim")))

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._started:.1f} s"

    def done(self, *, ok: bool) -> None:
        mark = ("✓", "green") if ok else ("✗", "red")
        console.print(Text.assemble(mark, " ", self._title, "  ", (self.note, "dim"), ("  " + self._elapsed(), "dim")))


@contextlib.contextmanager
def step(title: str) -> Iterator[Step]:
    """Show ``title`` with a spinner on a terminal, and its duration at the end."""
    status = console.status(Text(title), spinner="dots") if console.is_terminal else None
    current = Step(title=title, status=status)
    ok = False
    try:
        with status or contextlib.nullcontext():
            yield current
        ok = True
    finally:
        current.done(ok=ok)
