"""Waiting for what real parts do in their own time. The limit is for what never comes, not for what comes late."""

import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 90.0
"""Far beyond what anything here takes, so that a loaded machine fails no test; below pytest's own limit."""


def eventually(holds: Callable[[], Any], what: str = "it", *, within_s: float = LIMIT_S) -> Any:
    """
    What ``holds`` returns once it is true.

    Args:
        what: What is waited for, in the message. Default: "it".
        within_s: Shorter only where the test is about the time.
    """
    deadline = time.monotonic() + within_s
    asked = time.monotonic()
    while not (found := holds()):
        answered = time.monotonic()
        assert answered < deadline, f"{what} did not come about in {within_s:g} s"
        time.sleep(max(0.02, answered - asked))  # a question that starts a program has no more than half a core
        asked = time.monotonic()
    return found
