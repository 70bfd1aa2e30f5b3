"""Present content of open pages: sections with versions, and events; threads of the server wait here for changes."""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.cli.console.model import event_rows, series_of
from holdfast.cli.console.state import LogState


@dataclass
class PagePosition:
    """Versions and events that one page has."""

    versions: dict[str, int] = field(default_factory=dict)
    state: LogState | None = None
    number: int = 0


class Board:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sections: dict[str, tuple[int, str]] = {}
        self._state = LogState()
        self._closed = False

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Change the state that is shown; pages get it afterwards."""
        with self._changed:
            yield
            self._changed.notify_all()

    def show(self, state: LogState) -> None:
        with self._changed:
            self._state = state

    def publish(self, sections: Mapping[str, Any]) -> None:
        written = {name: to_json(value) for name, value in sections.items()}
        with self._changed:
            for name, text in written.items():
                version, before = self._sections.get(name, (0, ""))
                if text != before:
                    self._sections[name] = (version + 1, text)
            self._changed.notify_all()

    def close(self) -> None:
        """End all streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def messages(self, position: PagePosition, *, timeout_s: float) -> list[tuple[str, str]]:
        """Return what is new since ``position``, which moves on; nothing after ``timeout_s`` or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_behind(position), timeout_s)
            found = [
                (name, text)
                for name, (version, text) in self._sections.items()
                if position.versions.get(name) != version
            ]
            position.versions = {name: version for name, (version, _) in self._sections.items()}
            again = position.state is not self._state
            fresh = self._state.recent.after(0 if again else position.number)
            position.state, total = self._state, self._state.recent.total
            position.number = total
        if fresh or again:
            found.append(("events", to_json({"again": again, "total": total, "rows": event_rows(fresh)})))
        return found

    def series(self, job: str, *, now_ns: int) -> str | None:
        """Return the series of a job as JSON; None for an unknown one."""
        with self._changed:
            found = self._state.jobs.get(job)
            return None if found is None else to_json(series_of(found, now_ns=now_ns))

    def _is_behind(self, position: PagePosition) -> bool:
        return (
            position.state is not self._state
            or position.number != self._state.recent.total
            or any(position.versions.get(name) != version for name, (version, _) in self._sections.items())
        )


def to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
