"""
Records of a witness, and their lifetime. Pure: the time is an argument.

Forgetting is safe: a memory is never made again under the same identity, and a new one votes once a view names it.
"""

import secrets
from dataclasses import dataclass, field

from holdfast_runtime.membership import Message, Witness, answer
from holdfast_runtime.witness.wire import IDENTITY_BITS


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one witness."""

    runs: int = 1024
    held_bytes: int = 64 << 20
    """Of views, over all runs."""
    line_bytes: int = 1 << 20
    """One message; a view of about 3,000 ranks."""
    links: int = 2048
    links_per_host: int = 64
    unsent_bytes: int = 4 << 20
    """For one launcher that does not read."""
    admission_s: float = 5.0
    """For a handshake."""
    silence_s: float = 60.0
    """After it a link is closed."""
    idle_s: float = 3600.0
    """After it a run that no launcher speaks for is forgotten."""


@dataclass(eq=False)
class Record:
    """The memory for one run."""

    run_id: str
    key: str
    witness: Witness
    links: int = 0
    idle_since_s: float = 0.0
    parted: bool = False
    """A launcher has sent its goodbye."""
    held: dict[str, int] = field(default_factory=dict)
    """Bytes of the views that it remembers, by the kind of message that brought them."""

    @property
    def bytes(self) -> int:
        return sum(self.held.values())


class Records:
    """All memories of a witness."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._records: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def open(self, *, run_id: str, seat: int, key: str, now_s: float) -> Record | None:
        """A new memory; None where there is no room for one."""
        if len(self) >= self._limits.runs and not self._forget_one():
            return None
        identity = secrets.randbits(IDENTITY_BITS)
        record = Record(run_id, key, Witness(identity=identity, seat=seat), idle_since_s=now_s)
        self._records[identity] = record
        return record

    def find(self, identity: int) -> Record | None:
        """The memory of this identity; None when it is forgotten, or another witness's."""
        return self._records.get(identity)

    def hear(self, record: Record, message: Message, *, size: int) -> tuple[Message | None, bool]:
        """
        The memory's answer, and True if its committed view changed.

        Raises:
            ValueError: there is no room for a message of this size.
        """
        kind = type(message).__name__
        growth = size - record.held.get(kind, 0)
        while self._bytes() + growth > self._limits.held_bytes:
            if not self._forget_one(but=record):
                raise ValueError(f"this witness holds {self._limits.held_bytes} bytes of views already")
        generation = record.witness.generation
        record.held[kind] = size
        record.witness, reply = answer(record.witness, message)
        return reply, record.witness.generation != generation

    def left(self, record: Record, *, now_s: float) -> None:
        record.links -= 1
        record.idle_since_s = now_s
        if not record.links and record.parted:
            self._records.pop(record.witness.identity, None)

    def sweep(self, *, now_s: float) -> None:
        for identity, record in [*self._records.items()]:
            if not record.links and now_s - record.idle_since_s > self._limits.idle_s:
                del self._records[identity]

    def _bytes(self) -> int:
        return sum(record.bytes for record in self._records.values())

    def _forget_one(self, *, but: Record | None = None) -> bool:
        idle = [record for record in self._records.values() if not record.links and record is not but]
        if not idle:
            return False
        del self._records[min(idle, key=lambda record: record.idle_since_s).witness.identity]
        return True
