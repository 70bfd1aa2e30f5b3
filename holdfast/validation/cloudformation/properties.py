from collections.abc import Sequence
from typing import Any


class Properties(dict[str, Any]):
    """
    Properties that settings were translated into, with their places in the source.

    Args:
        path: Place of all together, and of a property without one of its own.
    """

    __slots__ = ("_holder", "_places", "path")

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path
        self._places: dict[tuple[str, ...], str] = {}
        self._holder: tuple[Properties, str] | None = None
        """Properties that these were put into by a longer path, and their name there."""

    def put(self, keys: Sequence[str], value: Any, place: str | None = None) -> None:
        """Set a property below; lists at one place are joined. None: only its place is noted."""
        if place is not None:
            self._places[tuple(keys)] = place
        if value is None:
            return
        first, *rest = keys
        if rest:
            if first not in self:
                self[first] = Properties(self.path)
                self[first]._holder = (self, first)
            self[first].put(rest, value)
        else:
            self[first] = [*self.get(first, ()), *value] if isinstance(value, list | tuple) else value

    def place(self, *keys: str) -> str:
        return self._noted(keys) or self.path

    def _noted(self, keys: tuple[str, ...]) -> str | None:
        found = self._places.get(keys)
        if found is None and self._holder is not None:
            holder, name = self._holder
            return holder._noted((name, *keys))
        return found
