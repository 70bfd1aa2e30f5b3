"""How far the file was shipped, and what was about to be put: a small file that outlives the agent."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Position:
    """
    A place in the file.

    Args:
        inode: Of the file; 0 where nothing is known.
        offset: After the last line that is in the stream.
        lines: How many that are.
        intended: How many there are if the last request was taken; the same unless the agent was killed meanwhile.
    """

    inode: int = 0
    offset: int = 0
    lines: int = 0
    intended: int = 0


class PositionFile:
    """
    Keeps a position for one stream.

    Args:
        path: The file; its folder is made.
        stream: A position of another stream is none: an image may have been made of a node.
    """

    def __init__(self, *, path: Path, stream: str) -> None:
        self._path, self._stream = path, stream

    def read(self) -> Position:
        """Where to go on; the beginning where the file is absent, half-written or another stream's."""
        try:
            document: Any = json.loads(self._path.read_bytes())
            if document["stream"] != self._stream:
                return Position()
            read = Position(**{name: int(document[name]) for name in asdict(Position())})
        except (OSError, ValueError, KeyError, TypeError):
            return Position()
        return read if min(asdict(read).values()) >= 0 and read.intended >= read.lines else Position()

    def write(self, position: Position) -> None:
        """Replace what is there; raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_name(f".{self._path.name}.tmp")
        unfinished.write_text(json.dumps({"stream": self._stream, **asdict(position)}), "ascii")
        unfinished.replace(self._path)
