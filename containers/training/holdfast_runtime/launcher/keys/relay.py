"""Carries the store's entries between the local ranks and the other launchers; ``shared`` says which go where."""

import asyncio
from collections.abc import Callable

from holdfast_runtime.control import TO_RANK, Change, Changed, Keys, Put
from holdfast_runtime.launcher.keys.shared import SharedKeys
from holdfast_runtime.launcher.links import ChangeAt, ChangedAt, Links
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import View

SHARE_AFTER_S = 0.002
"""Entries go on in one message, once no other has come for this time."""
SHARE_AT_LATEST_S = 0.1
"""However many keep coming."""


class KeyRelay:
    """The store of one launcher, with its timer."""

    def __init__(self, *, slots: LocalSlots, links: Links) -> None:
        self._slots = slots
        self._links = links
        self._keys = SharedKeys(self, node=slots.node)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._latest_s = 0.0

    def begin(self, view: View) -> None:
        self._keys.begin(view.generation, nodes=sorted({item.slot.node for item in view.ranks}))

    def share(self) -> None:
        self._timer = None
        self._keys.share()

    def from_rank(self, slot: int, message: Put | Change) -> None:
        if isinstance(message, Change):
            self._keys.change(slot, message)
        else:
            self._soon(self._keys.put, message)

    def from_launcher(self, message: Keys | ChangeAt | ChangedAt) -> None:
        if isinstance(message, Keys):
            self._soon(self._keys.take, message)
        elif isinstance(message, ChangeAt):
            self._keys.change_here(message)
        else:
            self._keys.answer(message)

    def _soon(self, take: Callable[..., bool], message: Put | Keys) -> None:
        if not take(message):
            return
        now = self._loop.time()
        if self._timer is None:
            self._latest_s = now + SHARE_AT_LATEST_S
        else:
            self._timer.cancel()
        self._timer = self._loop.call_at(min(now + SHARE_AFTER_S, self._latest_s), self.share)

    # What SharedKeys sends.

    def to_ranks(self, keys: Keys) -> None:
        line = TO_RANK.encode(keys) + b"\n"
        for slot in self._slots.in_view:
            slot.post(line)

    def to_launchers(self, keys: Keys) -> None:
        self._links.broadcast(keys)

    def to_launcher(self, node: int, message: Keys | ChangeAt | ChangedAt) -> None:
        self._links.send(node, message)

    def to_slot(self, slot: int, message: Changed) -> None:
        self._slots[slot].send(message)
