"""How the commands speak: one console for people, plain JSON for programs, steps that show they are alive."""

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
    """One that never cuts what is too wide, and shows of texts of others only what can be seen."""

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
        """As it is laid out, and of its text nothing that steers the terminal: names and messages are of others."""
        for segment in super().render(renderable, options):
            if segment.control or (shown := visible(segment.text)) == segment.text:
                yield segment
            else:
                yield Segment(shown, segment.style)


def stream_width(stream: IO[str]) -> int | None:
    """None: as the terminal, or ``COLUMNS``, says."""
    return None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH


# No markup: what is printed holds names that others chose, and "[/x]" in one would be an error.
console = UncutConsole(markup=False, emoji=False, highlight=False, width=stream_width(sys.stdout))
# Whole lines for a program; a terminal would break them within a word.
error_console = UncutConsole(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=not sys.stderr.isatty())


@contextlib.contextmanager
def json_alone() -> Iterator[None]:
    """What is told to people goes to standard error meanwhile."""
    console.aside = True
    try:
        yield
    finally:
        console.aside = False


def print_line(text: str) -> None:
    """Without what draws: as fast, and as fit to be shown."""
    print(visible(text))


def print_output(line: str) -> None:
    """A line that a program wrote: as it is for another program, and fit to be shown on a terminal."""
    print(visible(line) if sys.stdout.isatty() else line, flush=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output; dataclasses become objects, and a number that JSON lacks becomes null."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    print(json.dumps(_finite(plain), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


class Step:
    """A piece of work in progress; ``update`` replaces the words beside the spinner."""

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
    """Show ``title`` with a spinner on a terminal, and a line with the seconds it took when it ends."""
    status = console.status(Text(title), spinner="dots") if console.is_terminal else None
    current = Step(title=title, status=status)
    ok = False
    try:
        with status or contextlib.nullcontext():
            yield current
        ok = True
    finally:
        current.done(ok=ok)
