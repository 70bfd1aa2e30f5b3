"""
A home as the tree wrote it before its files moved: the same snapshots, with the names that modules had then.

Written from today's snapshots, since those hold moto's objects and Python's code: a recorded home would be good for one
version of each.
"""

import json
import pickletools
import zlib
from pathlib import Path

from holdfast.localcloud.aws.common import FORMER


def rewritten(home: Path) -> set[str]:
    """Give the snapshots of a home an earlier version and the names that modules had; those that were put in."""
    used: set[str] = set()
    names = {today: former for former, today in FORMER.items()}
    for path in (home / "aws" / "state").glob("*.snapshot"):
        header, _, data = path.read_bytes().partition(b"\n")
        aged = _aged(data, names, used)
        said = json.loads(header) | {"holdfast": "0.0.1", "length": len(aged), "crc32": zlib.crc32(aged)}
        path.write_bytes(json.dumps(said).encode() + b"\n" + aged)
    return used


def _aged(data: bytes, names: dict[str, str], used: set[str]) -> bytes:
    """A pickle with other names of modules, those in pickles inside it too. Frames, which say lengths, are left out."""
    if not any(name.encode() in data for name in names):
        return data
    operations = list(pickletools.genops(data))
    ends = [position for _, _, position in operations[1:]] + [len(data)]
    parts: list[bytes] = []
    for (operation, argument, start), end in zip(operations, ends, strict=True):
        if operation.name == "FRAME":
            continue
        if operation.name == "SHORT_BINUNICODE" and argument in names:
            used.add(names[argument])
            word = names[argument].encode()
            parts.append(b"\x8c" + bytes([len(word)]) + word)
        elif isinstance(argument, bytes) and any(name.encode() in argument for name in names):
            inner = _aged(argument, names, used)
            parts.append(b"B" + len(inner).to_bytes(4, "little") + inner)
        else:
            parts.append(data[start:end])
    return b"".join(parts)
