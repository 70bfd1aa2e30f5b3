"""Entries of the store at a rank, pushed by the launcher. Only those of the newest generation exist."""

import base64
import itertools
import threading
import time
from collections.abc import Callable, Collection, Sequence

from holdfast_runtime.control.messages import Change, Changed, FromRank, Keys, Put


class KeyBox:
    """Any thread may use it."""

    def __init__(self, send: Callable[[FromRank], None]) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._awaited: list[set[str]] = []
        """For each thread that waits, the entries that it still lacks."""
        self._generation = 0
        self._items: dict[str, str] = {}
        """Base64: most of them are never read."""
        self._answers: dict[int, bytes] = {}
        self._requests = itertools.count(1)
        self._closed = ""

    def put(self, key: str, value: bytes, *, generation: int) -> None:
        text = base64.b64encode(value).decode()
        with self._changed:
            self._move_to(generation)
            if generation == self._generation:
                self._items[key] = text
                self._found([key])
        self._send(Put(generation=generation, key=key, value=text))

    def get(self, key: str, *, generation: int, deadline_s: float) -> bytes:
        """An entry, once it is there. Raises TimeoutError, ConnectionError."""
        # Most are there already: without the lock, the thread that takes entries is not held up by one that reads all.
        text = self._items.get(key)
        if text is None or self._closed or generation != self._generation:
            with self._changed:
                self._wait([key], generation=generation, deadline_s=deadline_s)
                text = self._items[key]
        return base64.b64decode(text)

    def wait(self, keys: Sequence[str], *, generation: int, deadline_s: float) -> None:
        """Until all entries are there. Raises TimeoutError, ConnectionError when the generation is over."""
        with self._changed:
            self._wait(keys, generation=generation, deadline_s=deadline_s)

    def _wait(self, keys: Sequence[str], *, generation: int, deadline_s: float) -> None:
        self._move_to(generation)
        end = time.monotonic() + deadline_s
        while True:
            self._check(generation)
            missing = {key for key in keys if key not in self._items}
            if not missing:
                return
            left = end - time.monotonic()
            if left <= 0:
                some = ", ".join(sorted(missing)[:3])
                raise TimeoutError(f"no rank has set {some} of generation {generation} for {deadline_s} s")
            self._awaited.append(missing)
            self._changed.wait(left)
            self._awaited = [other for other in self._awaited if other is not missing]

    def has(self, keys: Sequence[str], *, generation: int) -> bool:
        with self._changed:
            return generation == self._generation and all(key in self._items for key in keys)

    def count(self, *, generation: int) -> int:
        with self._changed:
            return len(self._items) if generation == self._generation else 0

    def change(self, change: Change, *, deadline_s: float) -> bytes:
        """
        Change an entry where its launcher has it; the entry after it. ``request`` of the change is set here.

        Raises TimeoutError, ConnectionError.
        """
        number = next(self._requests)
        self._send(Change(**{**change.__dict__, "request": number}))
        end = time.monotonic() + deadline_s
        with self._changed:
            self._move_to(change.generation)
            while number not in self._answers:
                self._check(change.generation)
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{change.operation} of {change.key} got no answer for {deadline_s} s")
                self._changed.wait(left)
            return self._answers.pop(number)

    def take(self, keys: Keys) -> None:
        with self._changed:
            self._move_to(keys.generation)
            if keys.generation != self._generation:
                return
            for key, value in keys.entries:
                if value is None:
                    self._items.pop(key, None)
                else:
                    self._items[key] = value
            self._found(self._items)

    def changed(self, answer: Changed) -> None:
        with self._changed:
            self._answers[answer.request] = base64.b64decode(answer.value)
            self._changed.notify_all()

    def end(self, generation: int) -> None:
        with self._changed:
            self._move_to(generation + 1)
            self._changed.notify_all()

    def close(self, why: str) -> None:
        with self._changed:
            self._closed = why
            self._changed.notify_all()

    def _found(self, keys: Collection[str]) -> None:
        for missing in self._awaited:
            missing.difference_update(keys)
        if not all(self._awaited):
            self._changed.notify_all()

    def _move_to(self, generation: int) -> None:
        if generation > self._generation:
            self._items = {}
            self._generation = generation

    def _check(self, generation: int) -> None:
        if self._closed:
            raise ConnectionError(self._closed)
        if generation != self._generation:
            raise ConnectionError(f"generation {generation} is over, {self._generation} is next")
