"""Variables of the program that its loop has changed, and that a process with a lost rank has as at its start."""

import logging
import sys
from collections.abc import Mapping, Sequence

from holdfast_runtime.inprocess.errors import is_library

_LOG = logging.getLogger(__name__)
KINDS = (bool, int, float, str, type(None))
LONGEST = 60
SHOWN = 5
Values = Mapping[str, str]
"""Variables as text, by name."""


class Variables:
    """Plain variables of the program around the loop. They are compared in a recovery, and only a line is logged."""

    def __init__(self) -> None:
        self.of_others: Sequence[Values] = ()
        """Those that each rank had changed when the generation began."""
        self._first: Values | None = None

    def begin(self) -> None:
        """The program is about to begin a step. Before the first one here, log what other ranks have changed."""
        if self._first is not None:
            return
        self._first = of_program()
        if found := missed(self._first, self.of_others):
            _LOG.warning(
                "this process has taken over a rank, and variables that the loop has changed are as at its start: %s; "
                "give what decides about training to Run(state=...)",
                "; ".join(found[:SHOWN]),
            )

    def changed(self) -> Values:
        """Return what the loop has changed; nothing for a process that has begun no step."""
        first = self._first or {}
        return {name: value for name, value in of_program().items() if first.get(name, value) != value}


def missed(own: Values, changed: Sequence[Values]) -> list[str]:
    """Return variables with their values, where all ranks that have changed one agree, and this one has another."""
    values = {name: {each[name] for each in changed if name in each} for each in changed for name in each}
    return [
        f"{name} is {own[name]}, and {next(iter(found))} on the other ranks"
        for name, found in values.items()
        if len(found) == 1 and name in own and own[name] not in found
    ]


def of_program() -> Values:
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    plain = {name: repr(value) for name, value in [*frame.f_locals.items()] if type(value) in KINDS}
    return {name: text for name, text in plain.items() if not name.startswith("_") and len(text) <= LONGEST}
