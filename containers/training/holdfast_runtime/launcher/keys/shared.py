"""
The launcher's side of the store: entries of its ranks go to one launcher of the view, and from there to all at once.

Which one that is changes with each generation, and it needs no replacement: when a launcher of a view is lost, so is
the generation. It puts all changes in one order, so that ``add``, ``compare_set`` and ``delete`` cannot race. Among n
launchers 2n messages suffice where all to all would take n squared. Pure but for what it hands to ``KeySender``.
"""

import base64
from collections.abc import Sequence
from typing import Protocol

from holdfast_runtime.control import Change, Changed, Keys, Put
from holdfast_runtime.launcher.links import ChangeAt, ChangedAt


class KeySender(Protocol):
    """Receivers of messages."""

    def to_ranks(self, keys: Keys) -> None: ...
    def to_launchers(self, keys: Keys) -> None: ...
    def to_launcher(self, node: int, message: Keys | ChangeAt | ChangedAt) -> None: ...
    def to_slot(self, slot: int, message: Changed) -> None: ...


class SharedKeys:
    """The entries of the newest generation. Those of later generations wait until their view is there."""

    def __init__(self, outlet: KeySender, *, node: int) -> None:
        self._outlet = outlet
        self._node = node
        self._generation = 0
        self._collector = node
        self._items: dict[str, str] = {}
        """All entries, where they are collected."""
        self._fresh: dict[str, str | None] = {}
        """Not yet sent on."""
        self._early: list[Keys | ChangeAt] = []

    def begin(self, generation: int, *, nodes: Sequence[int]) -> None:
        self._generation = generation
        self._collector = nodes[generation % len(nodes)] if nodes else self._node
        self._items, self._fresh = {}, {}
        early, self._early = self._early, []
        for message in early:
            if isinstance(message, Keys):
                self.take(message)
            else:
                self.change_here(message)

    def put(self, put: Put) -> bool:
        if put.generation == self._generation:
            self._add({put.key: put.value})
        return put.generation == self._generation

    def take(self, keys: Keys) -> bool:
        if keys.generation > self._generation:
            self._early.append(keys)
        if keys.generation != self._generation:
            return False
        if self._collector != self._node:
            self._outlet.to_ranks(keys)
            return False
        self._add(dict(keys.entries))
        return True

    def share(self) -> None:
        if not self._fresh:
            return
        keys = Keys.of(self._generation, self._fresh)
        self._fresh = {}
        if self._collector == self._node:
            self._outlet.to_launchers(keys)
            self._outlet.to_ranks(keys)
        else:
            self._outlet.to_launcher(self._collector, keys)

    def change(self, slot: int, change: Change) -> None:
        asked = ChangeAt(node=self._node, slot=slot, change=change)
        if self._collector == self._node:
            self.change_here(asked)
        else:
            # What ranks here have put before comes before it.
            self.share()
            self._outlet.to_launcher(self._collector, asked)

    def change_here(self, asked: ChangeAt) -> None:
        change = asked.change
        if change.generation > self._generation:
            self._early.append(asked)
        if change.generation != self._generation:
            return
        answer, after = _changed(self._items.get(change.key), change)
        self._add({change.key: after})
        self.share()
        self.answer(ChangedAt(node=asked.node, slot=asked.slot, answer=Changed(change.request, answer)))

    def answer(self, changed: ChangedAt) -> None:
        if changed.node == self._node:
            self._outlet.to_slot(changed.slot, changed.answer)
        else:
            self._outlet.to_launcher(changed.node, changed)

    def _add(self, entries: dict[str, str | None]) -> None:
        self._fresh |= entries
        if self._collector == self._node:
            for key, value in entries.items():
                if value is None:
                    self._items.pop(key, None)
                else:
                    self._items[key] = value


def _changed(before: str | None, change: Change) -> tuple[str, str | None]:
    if change.operation == "delete":
        return _encoded(b"0" if before is None else b"1"), None
    if change.operation == "add":
        total = int(base64.b64decode(before or "") or b"0") + change.amount
        after = _encoded(str(total).encode())
        return after, after
    after = change.desired if (before or "") == change.expected else (before or change.expected)
    return after, after


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
