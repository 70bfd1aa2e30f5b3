"""
The store that torch.distributed asks for the addresses of other ranks, without a server and without rank 0.

Each rank's entries go to its launcher, from there to all launchers in one message, and to every rank before it asks.
"""

import base64
from collections.abc import Sequence
from datetime import timedelta

from torch._C._distributed_c10d import Store

from holdfast_runtime.control import Change, KeyBox


class GenerationStore(Store):
    """
    The entries of one generation.

    Args:
        generation: That of the view; entries of other generations do not exist here.
        deadline_s: Longest wait for an entry.
        purpose: Entries of another purpose do not exist here either: groups may be made more than once in a generation.
            Default: the only one
    """

    def __init__(self, keys: KeyBox, *, generation: int, deadline_s: float, purpose: str = "") -> None:
        super().__init__()
        self._prefix = f"{purpose}/" if purpose else ""
        self._keys = keys
        self._generation = generation
        self._deadline_s = deadline_s

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self._deadline_s)

    def set_timeout(self, timeout: timedelta) -> None:
        self._deadline_s = timeout.total_seconds()

    def set(self, key: str, value: str | bytes) -> None:
        self._keys.put(
            self._prefix + key, value.encode() if isinstance(value, str) else bytes(value), generation=self._generation
        )

    def get(self, key: str) -> bytes:
        """An entry, once it is there. Raises TimeoutError, ConnectionError."""
        return self._keys.get(self._prefix + key, generation=self._generation, deadline_s=self._deadline_s)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        self.wait(keys)
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return False

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until all entries are there. Raises TimeoutError, ConnectionError."""
        deadline_s = self._deadline_s if timeout is None else timeout.total_seconds()
        self._keys.wait([self._prefix + key for key in keys], generation=self._generation, deadline_s=deadline_s)

    def check(self, keys: Sequence[str]) -> bool:
        return self._keys.has([self._prefix + key for key in keys], generation=self._generation)

    def add(self, key: str, amount: int) -> int:
        return int(self._change(Change(self._generation, 0, self._prefix + key, "add", amount=amount)))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected, desired = (
            base64.b64encode(value.encode() if isinstance(value, str) else bytes(value)).decode()
            for value in (expected_value, desired_value)
        )
        return self._change(
            Change(self._generation, 0, self._prefix + key, "compare_set", expected=expected, desired=desired)
        )

    def delete_key(self, key: str) -> bool:
        return self._change(Change(self._generation, 0, self._prefix + key, "delete")) == b"1"

    def num_keys(self) -> int:
        return self._keys.count(generation=self._generation)

    def clone(self) -> "GenerationStore":
        same = GenerationStore(self._keys, generation=self._generation, deadline_s=self._deadline_s)
        same._prefix = self._prefix
        return same

    def _change(self, change: Change) -> bytes:
        return self._keys.change(change, deadline_s=self._deadline_s)
