"""Stacks of Python processes, as faulthandler and py-spy print them, and what a process does by its stack."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Doing = Literal["collective", "loader", "checkpoint", "evaluation", "compile", "program", ""]
"""Empty: unknown."""

_FAULTHANDLER = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)')
_PY_SPY = re.compile(r"\s+(?P<function>\S.*?) \((?P<file>[^()]+?)(?::(?P<line>\d+))?\)$")
_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+.*:$")
_PY_SPY_MAIN = re.compile(r'Thread \S+ \(.*\)(?:: )?"MainThread"|Thread \d+ \(\w+\): "MainThread"')
_LIBRARY = re.compile(r"(?:/|^)(?:site-packages|dist-packages|holdfast_runtime|python3[\d.]*)/|^<")
_ENVIRONMENT = re.compile(r".*/(?:site|dist)-packages/")
_STARTS_PROGRAM = re.compile(r"holdfast_runtime/launcher/|\brunpy\b")
_CALLS_MODULE = ("_call_impl", "_wrapped_call_impl")
_FILES: tuple[tuple[re.Pattern[str], Doing], ...] = (
    (re.compile(r"torch/utils/data/|holdfast_runtime/data/|/datasets/|/webdataset/"), "loader"),
    (re.compile(r"torch/serialization\.py|torch/distributed/checkpoint/|holdfast_runtime/snapshots/"), "checkpoint"),
    (re.compile(r"torch/_dynamo/|torch/_inductor/|torch/utils/cpp_extension|/triton/"), "compile"),
    (
        re.compile(r"torch/distributed/(?:distributed_c10d|_functional_coll\w*|nn/functional)\.py"
                   r"|holdfast_runtime/(?:groups|store|inprocess)/"),
        "collective",
    ),
)  # fmt: skip
_FUNCTIONS: tuple[tuple[re.Pattern[str], Doing], ...] = (
    (re.compile(r"checkpoint|(?:^|_)save(?:_|d|$)|fsync|snapshot", re.IGNORECASE), "checkpoint"),
    (re.compile(r"(?:^|_)(?:eval|evaluate|evaluation|validate|validation|test_epoch)(?:_|$)", re.IGNORECASE),
     "evaluation"),
    (re.compile(r"compile|(?:^|_)autotune", re.IGNORECASE), "compile"),
    (re.compile(r"(?:^|_)(?:barrier|all_?reduce|all_?gather|reduce_scatter|broadcast)(?:_|$)"), "collective"),
    (re.compile(r"(?:^|_)(?:warm_?up|load_batch|next_batch|prefetch)(?:_|$)|(?:^|_)loader", re.IGNORECASE), "loader"),
)  # fmt: skip
_LINES: tuple[tuple[re.Pattern[str], Doing], ...] = (
    (re.compile(r"\b(?:sav(?:e|es|ing)|writ(?:e|es|ing))\b.*\b(?:checkpoint|state|model|snapshot)|checkpointing"
                r"|\bcheckpoint\b(?!.*\b(?:saved|done|loaded|written)\b)", re.IGNORECASE), "checkpoint"),
    (re.compile(r"\b(?:evaluat(?:e|es|ing|ion)|validat(?:e|es|ing|ion))\b(?!.*\b(?:done|finished)\b)", re.IGNORECASE),
     "evaluation"),
    (re.compile(r"\bcompil(?:e|es|ing)\b|autotun", re.IGNORECASE), "compile"),
    (re.compile(r"\b(?:warm(?:s|ing)?[ -]?up|shuffl\w+ buffer|tokeniz(?:es|ing))\b", re.IGNORECASE), "loader"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Frame:
    function: str
    file: str
    line: int

    @property
    def text(self) -> str:
        return f"{self.function} ({_ENVIRONMENT.sub('', self.file)}:{self.line})"

    @property
    def is_program(self) -> bool:
        """True for a file of the user, not of a library or of Python."""
        return not _LIBRARY.search(self.file)


def parse_stack(text: str) -> tuple[Frame, ...]:
    """Frames of the main thread, innermost first; empty if there are none."""
    sections: list[tuple[str, list[Frame]]] = []
    for line in text.splitlines():
        if _THREAD.match(line.strip()) or line.startswith("Thread "):
            sections.append((line, []))
        elif found := _FAULTHANDLER.match(line) or _PY_SPY.match(line):
            if not sections:
                sections.append(("", []))
            number = int(found["line"] or 0)
            sections[-1][1].append(Frame(function=found["function"], file=found["file"], line=number))
    named = [frames for head, frames in sections if _PY_SPY_MAIN.search(head)]
    # faulthandler prints the newest thread first, so that the main thread is the last.
    frames = named[0] if named else sections[-1][1] if sections else []
    return tuple(frames)


def doing(stack: Sequence[Frame]) -> Doing:
    """Activity by the innermost frame that shows one; ``program`` for code of the user alone."""
    for place, frame in enumerate(stack):
        found = _first(_FILES, frame.file)
        # A library that calls the program is no collective of the program.
        if found == "collective" and any(one.is_program for one in stack[:place]):
            found = ""
        if found := found or _first(_FUNCTIONS, frame.function):
            return found
    return "program" if stack else ""


def shown_frames(stack: Sequence[Frame]) -> list[Frame]:
    """Frames without those of every program: what started it, and torch's calls of a module."""
    starts = next((at for at, one in enumerate(stack) if at and _STARTS_PROGRAM.search(one.file)), len(stack))
    return [one for one in stack[:starts] if one.function not in _CALLS_MODULE and not one.file.startswith("<frozen")]


def doing_by_output(lines: Sequence[str]) -> Doing:
    """Activity that the last line of the output announces; empty if it announces none."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return _first(_LINES, last)


def place(stack: Sequence[Frame]) -> str:
    """Innermost frame of the user's program, or else of all; empty without a stack."""
    if not stack:
        return ""
    frame = next((one for one in stack if one.is_program), stack[0])
    return f"{frame.file.rpartition('/')[2]}:{frame.line} in {frame.function}"


def _first(table: Sequence[tuple[re.Pattern[str], Doing]], text: str) -> Doing:
    return next((what for pattern, what in table if pattern.search(text)), "")
