"""Position in the file, and the request in progress; survives the agent."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Position:
    """
    Args:
        inode: 0: unknown.
        offset: Behind the last line in the stream.
        lines: Number of lines in the stream.
        intended: Number if the last request succeeded; differs only after a kill.
    """

    inode: int = 0
    offset: int = 0
    lines: int = 0
    intended: int = 0


class PositionFile:
    """Stores the position in one stream; that of another is ignored, since the file may come from an image."""

    def __init__(self, *, path: Path, stream: str) -> None:
        self._path, self._stream = path, stream

    def read(self) -> Position:
        """Return the position; the beginning where the file is absent, damaged or another stream's."""
        try:
            document: Any = json.loads(self._path.read_bytes())
            if document["stream"] != self._stream:
                return Position()
            read = Position(**{name: int(document[name]) for name in asdict(Position())})
        except (OSError, ValueError, KeyError, TypeError):
            return Position()
        return read if min(asdict(read).values()) >= 0 and read.intended >= read.lines else Position()

    def write(self, position: Position) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_name(f".{self._path.name}.tmp")
        unfinished.write_text(json.dumps({"stream": self._stream, **asdict(position)}), "ascii")
        unfinished.replace(self._path)
