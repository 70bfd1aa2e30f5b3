"""Shared state and connections of all parts of a launcher."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from holdfast_runtime.launcher.generation.ending import Ending
from holdfast_runtime.launcher.generation.journal import Journal
from holdfast_runtime.launcher.links import Links
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.launcher.settings import Options


@dataclass(frozen=True, kw_only=True)
class Context:
    """The job on this node, its end, and the ways out."""

    options: Options
    slots: LocalSlots
    links: Links
    journal: Journal
    ending: Ending
    later: Callable[..., asyncio.TimerHandle]
    """Calls something after so many seconds."""


class Part:
    """One part of a launcher."""

    def __init__(self, context: Context) -> None:
        self._options = context.options
        self._deadlines = context.options.deadlines
        self._slots = context.slots
        self._links = context.links
        self._journal = context.journal
        self._ending = context.ending
        self._later = context.later
