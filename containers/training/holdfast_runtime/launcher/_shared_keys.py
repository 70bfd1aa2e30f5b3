"""
The launcher's side of the store: entries of its ranks go to all launchers at once, and from each to its own ranks.

A change that must not race (``add``, ``compare_set``, ``delete``) is made by one launcher per key, which the key itself
determines among those of the view. Pure but for what it hands to ``Outlet``.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast_runtime.control import Change, Changed, Keys, Put
from holdfast_runtime.launcher._wire import ChangeAt, ChangedAt


class Outlet(Protocol):
    """Where messages go."""

    def to_ranks(self, keys: Keys) -> None: ...
    def to_launchers(self, keys: Keys) -> None: ...
    def to_launcher(self, node: int, message: ChangeAt | ChangedAt) -> None: ...
    def to_slot(self, slot: int, message: Changed) -> None: ...


@dataclass(frozen=True)
class Entry:
    """One key with its base64 value; None when it was deleted."""

    key: str
    value: str | None


class SharedKeys:
    """The entries of the newest epoch. Those of later epochs wait until their view is there."""

    def __init__(self, outlet: Outlet, *, node: int) -> None:
        self._outlet = outlet
        self._node = node
        self._epoch = 0
        self._owners: tuple[int, ...] = (node,)
        self._items: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self._fresh: dict[str, str | None] = {}
        """Not yet sent to other launchers: what local ranks have put."""
        self._pending: dict[str, str | None] = {}
        """Not yet sent to local ranks."""
        self._early: list[Keys] = []

    def begin(self, epoch: int, *, nodes: Sequence[int]) -> None:
        """A view is committed, with ranks on these nodes; ``share`` once it was given to the local ranks."""
        self._epoch = epoch
        self._owners = tuple(nodes) or (self._node,)
        self._items, self._own, self._fresh, self._pending = {}, {}, {}, {}
        early, self._early = self._early, []
        for keys in early:
            self.take(keys)

    def put(self, put: Put) -> bool:
        """An entry of a local rank. Whether there is something to ``share``."""
        if put.epoch != self._epoch:
            return False
        self._items[put.key] = self._own[put.key] = put.value
        self._fresh[put.key] = self._pending[put.key] = put.value
        return True

    def take(self, keys: Keys) -> bool:
        """Entries of another launcher's ranks. Whether there is something to ``share``."""
        if keys.epoch > self._epoch:
            self._early.append(keys)
        if keys.epoch != self._epoch:
            return False
        for key, value in keys.entries:
            self._set(Entry(key, value))
            self._pending[key] = value
        return True

    def share(self) -> None:
        """Send what has come since the last time, each way in one message."""
        if self._fresh:
            self._outlet.to_launchers(Keys.of(self._epoch, self._fresh))
        if self._pending:
            self._outlet.to_ranks(Keys.of(self._epoch, self._pending))
        self._fresh, self._pending = {}, {}

    def own(self) -> Keys:
        """All entries of local ranks, for a launcher that may have missed some."""
        return Keys(self._epoch, tuple(self._own), tuple(self._own.values()))

    def change(self, slot: int, change: Change) -> None:
        """A local rank asks for a change."""
        owner = self._owners[zlib.crc32(change.key.encode()) % len(self._owners)]
        request = ChangeAt(node=self._node, slot=slot, change=change)
        if owner == self._node:
            self.change_here(request)
        else:
            self._outlet.to_launcher(owner, request)

    def change_here(self, asked: ChangeAt) -> None:
        """A change of an entry that this launcher owns."""
        change = asked.change
        if change.epoch != self._epoch:
            return
        answer, entry = _changed(self._items.get(change.key), change)
        self._set(entry)
        if entry.value is not None:
            self._own[entry.key] = entry.value
        self._fresh[entry.key] = self._pending[entry.key] = entry.value
        self.share()
        self.answer(ChangedAt(node=asked.node, slot=asked.slot, answer=Changed(change.request, answer)))

    def _set(self, entry: Entry) -> None:
        if entry.value is None:
            self._items.pop(entry.key, None)
            self._own.pop(entry.key, None)
        else:
            self._items[entry.key] = entry.value

    def answer(self, changed: ChangedAt) -> None:
        """The answer to a change, on its way to the rank that asked."""
        if changed.node == self._node:
            self._outlet.to_slot(changed.slot, changed.answer)
        else:
            self._outlet.to_launcher(changed.node, changed)


def _changed(before: str | None, change: Change) -> tuple[str, Entry]:
    """The answer, and the entry after a change."""
    if change.operation == "delete":
        return _encoded(b"0" if before is None else b"1"), Entry(change.key, None)
    if change.operation == "add":
        total = int(base64.b64decode(before or "") or b"0") + change.amount
        after = _encoded(str(total).encode())
        return after, Entry(change.key, after)
    after = change.desired if (before or "") == change.expected else (before or change.expected)
    return after, Entry(change.key, after)


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
