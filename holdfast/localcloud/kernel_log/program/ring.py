"""
Records of one kernel log, in the form of /dev/kmsg (Documentation/ABI/testing/dev-kmsg).

Numbers and escapes are those of ``kernel/printk/printk.c`` of Linux 6.18.
"""

from __future__ import annotations

BYTES = 1 << 18
"""Size as with ``CONFIG_LOG_BUF_SHIFT=18``, the default of server distributions."""
LONGEST = 1024
"""Of what a program may write at once (``PRINTKRB_RECORD_MAX``)."""
USER = 1
"""Facility of what programs write: none of them can speak as the kernel, whose facility is 0."""
WARNING = 4
"""Level of what names none (``MESSAGE_LOGLEVEL_DEFAULT``)."""


def escaped(text: bytes) -> bytes:
    if text.isascii() and b"\\" not in text and text.decode().isprintable():
        return text
    return b"".join(b"%c" % c if 32 <= c < 127 and c != 92 else b"\\x%02x" % c for c in text)


def parsed(data: bytes) -> tuple[int, bytes]:
    """Parse ``<N>text`` of a program; N may name a facility."""
    level, facility, text = WARNING, USER, data
    number, bracket, rest = data[1:].partition(b">")
    if data[:1] == b"<" and bracket and number.isdigit():
        level, facility, text = int(number) & 7, int(number) >> 3 & 0x1FFFFFFF or USER, rest
    return facility << 3 | level, text.removesuffix(b"\n")


class Ring:
    """Newest records within ``size`` bytes."""

    def __init__(self, size: int = BYTES) -> None:
        self.next = 0
        """Sequence number of the record that comes next."""
        self.oldest = 0
        """That of the first record that is still there; ``next`` where there is none."""
        self._size, self._used = size, 0
        self._records: dict[int, bytes] = {}

    def add(self, *, priority: int, micros: int, text: bytes) -> None:
        record = b"%d,%d,%d,-;%s\n" % (priority, self.next, micros, escaped(text))
        number, self.next = self.next, self.next + 1
        self._records[number] = record
        self._used += len(record)
        while self._used > self._size and self.oldest < number:
            self._used -= len(self._records.pop(self.oldest))
            self.oldest += 1

    def get(self, number: int) -> bytes:
        return self._records[number]
