"""Context of a part of a launcher, in a test of that part."""

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from holdfast_runtime.control import Deadlines


def context(
    slots: object,
    *,
    links: object = None,
    journal: object = None,
    ending: object = None,
    timer: Callable[[float, Callable[[], object]], object] | None = None,
    options: object = None,
    **some_options: object,
) -> Any:
    """
    Args:
        timer: Gets seconds and a call. Default: a timer of the running loop
        options: Default: those of ``some_options``, and default deadlines
    """
    given = options or SimpleNamespace(**{"deadlines": Deadlines(), "nodes": 2, **some_options})

    def later(after_s: float, call: Callable[..., object], *args: object) -> object:
        return (timer or asyncio.get_running_loop().call_later)(after_s, partial(call, *args))

    return SimpleNamespace(options=given, slots=slots, links=links, journal=journal, ending=ending, later=later)
