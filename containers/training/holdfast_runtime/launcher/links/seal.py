"""Lines of one connection, each with a code that only the two ends can make, in this order and this direction."""

import asyncio
import hmac
import struct

from holdfast_runtime.control import MessageError

_HEAD = struct.Struct("!I16s")
"""Length of the line, and its code."""
LONGEST_BYTES = 1 << 26


class SealedLine:
    """One end of a connection after the handshake."""

    def __init__(self, key: bytes, *, calling: bool) -> None:
        self._out = hmac.digest(key, b"from the caller" if calling else b"to the caller", "sha256")
        self._in = hmac.digest(key, b"to the caller" if calling else b"from the caller", "sha256")
        self._sent = self._read = 0

    def seal(self, line: bytes) -> bytes:
        self._sent += 1
        return _HEAD.pack(len(line), _code(self._out, self._sent, line)) + line

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        """
        The next line; None at the end.

        Raises:
            MessageError: somebody else has written it, or it is not the next one.
        """
        try:
            size, code = _HEAD.unpack(await reader.readexactly(_HEAD.size))
            if size > LONGEST_BYTES:
                raise MessageError(f"a line of {size} bytes is too long")
            line = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return None
        self._read += 1
        if not hmac.compare_digest(code, _code(self._in, self._read, line)):
            raise MessageError("a line is not from who made the connection")
        return line


def _code(key: bytes, number: int, line: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + line, "sha256")[:16]
