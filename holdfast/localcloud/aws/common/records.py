"""
Records of small services: resources that take a moment to create, change and delete.

A record changes its state by the clock when it is read, so nothing runs in the background. Callers hold their own lock.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.localcloud.aws.common.clock import now

TRANSITION = timedelta(seconds=0.15)


@dataclass(kw_only=True)
class Record:
    """One record: its content in the API's shape without status, and the operation in progress."""

    content: dict[str, Any]
    doing: str
    until: datetime

    @property
    def busy(self) -> bool:
        return now() < self.until

    @property
    def leaving(self) -> bool:
        return self.doing == "DELETING"

    def status(self, *, settled: str) -> str:
        """Return the operation in progress, or ``settled``."""
        return self.doing if self.busy or self.leaving else settled

    def begin(self, doing: str) -> None:
        if not self.leaving:
            self.doing, self.until = doing, now() + TRANSITION


class RecordStore:
    """Records of one kind by key; ``missing`` makes the error for an unknown key."""

    def __init__(self, missing: Callable[[Any], Exception]) -> None:
        self._missing = missing
        self._records: dict[Any, Record] = {}

    def add(self, key: Any, content: dict[str, Any], *, doing: str = "CREATING") -> Record:
        record = Record(content=content, doing=doing, until=now() + TRANSITION)
        self._records[key] = record
        return record

    def get(self, key: Any) -> Record:
        found = self.find(key)
        if found is None:
            raise self._missing(key)
        return found

    def find(self, key: Any) -> Record | None:
        self._purge()
        return self._records.get(key)

    def items(self) -> list[tuple[Any, Record]]:
        self._purge()
        return list(self._records.items())

    def values(self) -> list[Record]:
        self._purge()
        return list(self._records.values())

    def forget(self, key: Any) -> None:
        self._records.pop(key, None)

    def dump(self) -> list[tuple[Any, dict[str, Any], str, datetime]]:
        self._purge()
        return [
            (key, copy.deepcopy(record.content), record.doing, record.until) for key, record in self._records.items()
        ]

    def load(self, kept: list[tuple[Any, dict[str, Any], str, datetime]]) -> None:
        self._records = {key: Record(content=content, doing=doing, until=until) for key, content, doing, until in kept}

    def _purge(self) -> None:
        for key in [key for key, record in self._records.items() if record.leaving and not record.busy]:
            del self._records[key]
