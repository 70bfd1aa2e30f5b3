"""
/dev/kmsg as answers to the kernel's requests, as ``devkmsg_*`` in printk.c.

One record per read, starting at the oldest; then block or EAGAIN; EPIPE once after lost records; EINVAL for a buffer
that is too small, which skips the record. Differences: ``stat`` shows a regular file, and SEEK_END returns an offset
that is not 0.
"""

from __future__ import annotations

import errno
import os

from . import fuse
from .ring import LONGEST, Ring, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

END = 1 << 40
"""File size for SEEK_END alone: the kernel handles offsets itself, and a read then shows the seek."""
_POLLIN, _POLLPRI, _POLLERR, _POLLRDNORM = 0x1, 0x2, 0x8, 0x40


class Reader:
    def __init__(self, at: int) -> None:
        self.at = at
        """Sequence number of the record that it reads next."""
        self.expected = 0
        """Offset of its next read, unless it seeks."""
        self.polled = 0
        """The kernel's handle of a poll in progress."""


class Device:
    """Kernel log of one node. ``micros`` returns microseconds since boot."""

    def __init__(self, *, micros: Callable[[], int]) -> None:
        self.ring = Ring()
        self._micros = micros
        self._readers: dict[int, Reader] = {}
        self._opened = 0
        self._waiting: dict[int, tuple[Reader, int]] = {}
        """Reads without an answer yet: unique -> reader, size of its buffer."""

    def add(self, *, priority: int, text: bytes) -> list[bytes]:
        """Add a record; return the answers for blocked readers."""
        self.ring.add(priority=priority, micros=self._micros(), text=text)
        return self._woken()

    def handle(self, request: bytes) -> list[bytes]:
        _, opcode, unique, _, user, *_ = fuse.IN.unpack_from(request)
        body = request[fuse.IN.size :]
        answer = _ANSWERS.get(opcode)
        if answer is not None:
            return answer(self, unique, body)
        if opcode == fuse.OPEN:
            return [self._open(unique, flags=fuse.U32.unpack_from(body)[0], user=user)]
        if opcode in (fuse.FORGET, fuse.BATCH_FORGET):
            return []
        return [fuse.reply(unique, error=errno.ENOSYS)]

    def _open(self, unique: int, *, flags: int, user: int) -> bytes:
        # Distributions set kernel.dmesg_restrict, and CAP_SYSLOG, which it takes then, no user of a node can have.
        if user != 0 and flags & os.O_ACCMODE != os.O_WRONLY:
            return fuse.reply(unique, error=errno.EPERM)
        self._opened += 1
        self._readers[self._opened] = Reader(self.ring.oldest)
        return fuse.reply(unique, fuse.OPENED.pack(self._opened, fuse.FOPEN_DIRECT_IO, 0))

    def _getattr(self, unique: int, body: bytes) -> list[bytes]:
        flags, _, handle = fuse.GETATTR_IN.unpack_from(body)
        size = 0
        if flags & fuse.GETATTR_FH and handle in self._readers:  # of an open file the kernel asks for SEEK_END only
            reader = self._readers[handle]
            reader.at, reader.expected, size = self.ring.next, END, END
        return [fuse.attributes(unique, size=size, seconds=self._micros() // 1_000_000)]

    def _setattr(self, unique: int, _body: bytes) -> list[bytes]:
        return [fuse.attributes(unique, size=0, seconds=self._micros() // 1_000_000)]

    def _lseek(self, unique: int, body: bytes) -> list[bytes]:
        handle, offset, whence, _ = fuse.LSEEK_IN.unpack_from(body)
        if offset:
            return [fuse.reply(unique, error=errno.ESPIPE)]
        if whence != os.SEEK_DATA:
            return [fuse.reply(unique, error=errno.EINVAL)]
        self._readers[handle].at = self._readers[handle].expected = (
            0  # after the last clear, and nobody clears this log
        )
        return [fuse.reply(unique, fuse.U64.pack(0))]

    def _read(self, unique: int, body: bytes) -> list[bytes]:
        handle, offset, size, _, _, flags, _ = fuse.READ_IN.unpack_from(body)
        reader = self._readers[handle]
        if offset != reader.expected and offset == 0:
            reader.at, reader.expected = self.ring.oldest, 0
        if reader.at >= self.ring.next and not flags & os.O_NONBLOCK:
            self._waiting[unique] = (reader, size)
            return []
        return [self._record(unique, reader, size)]

    def _record(self, unique: int, reader: Reader, size: int) -> bytes:
        if reader.at >= self.ring.next:
            return fuse.reply(unique, error=errno.EAGAIN)
        if reader.at < self.ring.oldest:
            reader.at = self.ring.oldest
            return fuse.reply(unique, error=errno.EPIPE)
        record = self.ring.get(reader.at)
        reader.at += 1
        if len(record) > size:
            return fuse.reply(unique, error=errno.EINVAL)
        reader.expected += len(record)
        return fuse.reply(unique, record)

    def _write(self, unique: int, body: bytes) -> list[bytes]:
        size = fuse.WRITE_IN.unpack_from(body)[2]
        data = body[fuse.WRITE_IN.size : fuse.WRITE_IN.size + size]
        if len(data) > LONGEST:
            return [fuse.reply(unique, error=errno.EINVAL)]
        priority, text = parsed(data)
        return [fuse.reply(unique, fuse.PAIR.pack(size, 0)), *self.add(priority=priority, text=text)]

    def _poll(self, unique: int, body: bytes) -> list[bytes]:
        handle, name, flags, _ = fuse.POLL_IN.unpack_from(body)
        reader, ready = self._readers[handle], 0
        if flags & fuse.POLL_SCHEDULE_NOTIFY:
            reader.polled = name
        if reader.at < self.ring.next:
            ready = _POLLIN | _POLLRDNORM
        if reader.at < self.ring.oldest:
            ready |= _POLLERR | _POLLPRI
        return [fuse.reply(unique, fuse.PAIR.pack(ready, 0))]

    def _release(self, unique: int, body: bytes) -> list[bytes]:
        self._readers.pop(fuse.U64.unpack_from(body)[0], None)
        return [fuse.reply(unique)]

    def _interrupt(self, _unique: int, body: bytes) -> list[bytes]:
        # A process that waits for a request which was read cannot even be killed before it is answered.
        (interrupted,) = fuse.U64.unpack_from(body)
        if self._waiting.pop(interrupted, None) is None:
            return []
        return [fuse.reply(interrupted, error=errno.EINTR)]

    def _woken(self) -> list[bytes]:
        waiting, self._waiting = self._waiting, {}
        answers = [self._record(unique, reader, size) for unique, (reader, size) in waiting.items()]
        for reader in self._readers.values():
            if reader.polled:
                answers.append(fuse.notify_poll(reader.polled))
                reader.polled = 0
        return answers


_ANSWERS: dict[int, Callable[[Device, int, bytes], list[bytes]]] = {
    fuse.INIT: lambda _, unique, body: [fuse.init_reply(unique, body)],
    fuse.GETATTR: Device._getattr,
    fuse.SETATTR: Device._setattr,
    fuse.READ: Device._read,
    fuse.WRITE: Device._write,
    fuse.LSEEK: Device._lseek,
    fuse.POLL: Device._poll,
    fuse.RELEASE: Device._release,
    fuse.INTERRUPT: Device._interrupt,
    fuse.STATFS: lambda _, unique, __: [fuse.statistics(unique)],
    fuse.DESTROY: lambda _, unique, __: [fuse.reply(unique)],
}
