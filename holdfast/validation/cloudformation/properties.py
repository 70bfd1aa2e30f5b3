from collections.abc import Sequence
from typing import Any


class Properties(dict[str, Any]):
    """
    Properties that settings were translated into, with their places in the source.

    Args:
        path: Place of all together, and of a property without one of its own.
    """

    __slots__ = ("_places", "path")

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path
        self._places: dict[str, str] = {}

    def put(self, keys: Sequence[str], value: Any, place: str | None) -> None:
        """Set a property below; lists at one place are joined. None: only its place is noted."""
        if place is not None:
            self._places[".".join(keys)] = place
        if value is None:
            return
        first, *rest = keys
        if rest:
            self.setdefault(first, Properties(self.path)).put(rest, value, place)
        else:
            self[first] = [*self.get(first, ()), *value] if isinstance(value, list | tuple) else value

    def place(self, *keys: str) -> str:
        return self._places.get(".".join(keys), self.path)
