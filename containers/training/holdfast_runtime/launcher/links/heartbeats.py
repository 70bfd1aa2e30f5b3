"""Heartbeats: send, detect timeouts, report suspected peers."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links.heartbeat_thread import HeartbeatThread
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.watching import patience_s
from holdfast_runtime.launcher.links.wire import LINK, HeartbeatRequest

JUDGE_AFTER_S = 0.02
SETTLE_S = 0.05
"""Delay from a launcher's start or loss to the choice of the watched: at the start of a job all connect at once."""


class Heartbeats:
    """This launcher's part in watching."""

    def __init__(
        self,
        *,
        links: Mapping[int, Link],
        beside: Callable[[], frozenset[int]],
        deadlines: Deadlines,
    ) -> None:
        self._links = links
        self._beside = beside
        self._deadlines = deadlines
        self._awaited: frozenset[int] = frozenset()
        self._strict_s = math.inf
        """From when on the deadline for signs of life counts as it is; inf before the job has a view."""
        self._settling: asyncio.TimerHandle | None = None
        self._pulse = HeartbeatThread(links=links, deadlines=deadlines)
        self._changed = asyncio.Event()
        """There is more to do than was known when the wait began."""

    @property
    def _formed(self) -> bool:
        return self._strict_s < math.inf

    def patience_s(self, late_s: float = 0.0) -> float:
        """Longest silence of a launcher; ``late_s`` is how late its heartbeats came lately."""
        late_s = max(late_s, self._pulse.late_s) if time.monotonic() >= self._strict_s else math.inf
        return patience_s(self._deadlines.heartbeat, late_s=late_s)

    def close(self) -> None:
        self._pulse.stop()
        if self._settling is not None:
            self._settling.cancel()

    def begin(self) -> None:
        if not self._formed:
            self._strict_s = time.monotonic() + self.patience_s()
            self.settle_soon()

    def watch_also(self, nodes: frozenset[int]) -> None:
        if nodes != self._awaited:
            self._awaited = nodes
            self.settle_soon()

    def settle_soon(self) -> None:
        if self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._settle)

    def heard(self, link: Link, message: HeartbeatRequest) -> None:
        link.watches = message.requested
        if message.requested:
            link.beat()

    async def run(self) -> None:
        self._pulse.start()
        while True:
            self._changed.clear()
            now_s = time.monotonic()
            self._pulse.working(now_s)
            left_s = min(
                (self._judge(link, now_s=now_s) for link in [*self._links.values()] if link.watched), default=math.inf
            )
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(self._deadlines.heartbeat, left_s))

    def _judge(self, link: Link, *, now_s: float) -> float:
        may_be_s = self.patience_s(link.late_s)
        left_s = link.heard_s + may_be_s - now_s
        if left_s <= 0 and link.suspected and not link.silent:
            link.end(f"it was silent for {round(may_be_s, 1):g} s")
        # Where this launcher itself was stopped, what came meanwhile is read before anybody is judged.
        link.suspected = left_s <= 0
        return JUDGE_AFTER_S if link.suspected else left_s

    def _settle(self) -> None:
        self._settling = None
        links = self._links
        desired = (self._beside() if self._formed else frozenset()) | self._awaited
        for node, link in links.items():
            if link.watched != (node in desired):
                link.watched, link.heard_s = node in desired, time.monotonic()
                link.write(LINK.encode(HeartbeatRequest(link.watched)))
        self._changed.set()
