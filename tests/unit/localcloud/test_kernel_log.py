"""The kernel log of a node, without a kernel: records, readers, and what each request is answered."""

import errno
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.kernel_log.program import fuse
from holdfast.localcloud.kernel_log.program.device import END, Device
from holdfast.localcloud.kernel_log.program.ring import Ring, escaped, parsed


class Kernel:
    """What the kernel would ask of the device for its readers."""

    def __init__(self) -> None:
        self.device = Device(micros=lambda: 7)
        self.unique = 0

    def ask(self, opcode: int, body: bytes, *, user: int = 0) -> list[bytes]:
        self.unique += 1
        head = fuse.IN.pack(fuse.IN.size + len(body), opcode, self.unique, 1, user, user, 42, 0)
        return self.device.handle(head + body)

    def open(self, flags: int = os.O_RDONLY, *, user: int = 0) -> int:
        error, payload = said(self.ask(fuse.OPEN, struct.pack("<II", flags, 0), user=user)[0])
        return -error if error else int(fuse.OPENED.unpack(payload)[0])

    def read(self, handle: int, *, offset: int = 0, size: int = 8192, wait: bool = False) -> list[bytes]:
        flags = 0 if wait else os.O_NONBLOCK
        return self.ask(fuse.READ, fuse.READ_IN.pack(handle, offset, size, 0, 0, flags, 0))

    def write(self, data: bytes) -> list[bytes]:
        return self.ask(fuse.WRITE, fuse.WRITE_IN.pack(0, 0, len(data), 0, 0, 0, 0) + data)

    def poll(self, handle: int, *, name: int = 0) -> int:
        (answer,) = self.ask(fuse.POLL, fuse.POLL_IN.pack(handle, name, 1 if name else 0, 0))
        return int(fuse.PAIR.unpack(said(answer)[1])[0])

    def seek_end(self, handle: int) -> None:
        self.ask(fuse.GETATTR, fuse.GETATTR_IN.pack(fuse.GETATTR_FH, 0, handle))


def said(answer: bytes) -> tuple[int, bytes]:
    """The error of an answer, and what is in it."""
    length, error, _ = fuse.OUT.unpack_from(answer)
    assert length == len(answer)
    return -error, answer[fuse.OUT.size :]


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.mark.parametrize(
    ("written", "record"),
    [
        (b"text\n", b"12,0,7,-;text\n"),
        (b"<3>text", b"11,0,7,-;text\n"),
        (b"<30>text", b"30,0,7,-;text\n"),
        (b"<x>text", b"12,0,7,-;<x>text\n"),
        (b"<3text", b"12,0,7,-;<3text\n"),
        (b"", b"12,0,7,-;\n"),
    ],
)
def test_what_a_program_writes_has_its_level_and_never_the_facility_of_the_kernel(
    kernel: Kernel, written: bytes, record: bytes
):
    reader = kernel.open()
    assert said(kernel.write(written)[0]) == (0, fuse.PAIR.pack(len(written), 0))
    assert said(kernel.read(reader)[0]) == (0, record)


@given(st.binary(max_size=200))
def test_a_record_is_one_line_of_printable_ascii(text: bytes):
    line = escaped(text)
    assert all(32 <= byte < 127 for byte in line)
    assert line.decode("unicode_escape").encode("latin-1") == text


@given(st.binary(max_size=200))
def test_whatever_a_program_writes_is_not_from_the_kernel(data: bytes):
    assert parsed(data)[0] >> 3 > 0


def test_a_reader_begins_with_the_oldest_record_and_then_has_none(kernel: Kernel):
    kernel.write(b"first")
    kernel.write(b"second")
    reader = kernel.open()
    assert said(kernel.read(reader)[0])[1].endswith(b";first\n")
    assert said(kernel.read(reader, offset=16)[0])[1].endswith(b";second\n")
    assert said(kernel.read(reader, offset=33)[0]) == (errno.EAGAIN, b"")


def test_a_reader_that_waits_is_answered_by_the_next_record(kernel: Kernel):
    reader = kernel.open()
    assert kernel.read(reader, wait=True) == []
    assert said(kernel.write(b"<3>now")[1]) == (0, b"11,0,7,-;now\n")


def test_a_reader_that_waits_and_is_interrupted_is_let_go(kernel: Kernel):
    reader = kernel.open()
    kernel.read(reader, wait=True)
    (answer,) = kernel.ask(fuse.INTERRUPT, fuse.U64.pack(kernel.unique))
    assert said(answer) == (errno.EINTR, b"")
    assert len(kernel.write(b"nobody waits")) == 1


def test_a_reader_that_was_overtaken_hears_of_it_once_and_goes_on_with_the_oldest(kernel: Kernel):
    reader = kernel.open()
    for number in range(400):
        kernel.write(b"%d " % number + b"x" * 1000)
    oldest = kernel.device.ring.oldest
    assert oldest > 0
    assert kernel.poll(reader) == 0x1 | 0x40 | 0x8 | 0x2  # IN, RDNORM, ERR, PRI
    assert said(kernel.read(reader)[0]) == (errno.EPIPE, b"")
    assert said(kernel.read(reader)[0])[1].startswith(b"12,%d," % oldest)


def test_a_buffer_that_is_too_small_costs_the_record(kernel: Kernel):
    kernel.write(b"a long line")
    kernel.write(b"b")
    reader = kernel.open()
    assert said(kernel.read(reader, size=8)[0]) == (errno.EINVAL, b"")
    assert said(kernel.read(reader)[0])[1].endswith(b";b\n")


def test_seeking_to_the_end_counts_from_the_seek_and_not_from_the_first_read(kernel: Kernel):
    kernel.write(b"old")
    reader = kernel.open()
    kernel.seek_end(reader)
    assert kernel.poll(reader) == 0
    kernel.write(b"new")
    assert kernel.poll(reader) == 0x1 | 0x40
    assert said(kernel.read(reader, offset=END)[0])[1].endswith(b";new\n")


def test_seeking_to_the_beginning_shows_the_oldest_again(kernel: Kernel):
    kernel.write(b"old")
    reader = kernel.open()
    for offset in (0, 0):
        assert said(kernel.read(reader, offset=offset)[0])[1].endswith(b";old\n")


def test_asking_for_the_size_without_an_open_file_moves_no_reader(kernel: Kernel):
    kernel.write(b"old")
    reader = kernel.open()
    kernel.ask(fuse.GETATTR, fuse.GETATTR_IN.pack(0, 0, 0))
    assert said(kernel.read(reader)[0])[1].endswith(b";old\n")


def test_whoever_polls_is_woken_once_for_each_time_it_asks(kernel: Kernel):
    reader = kernel.open()
    assert kernel.poll(reader, name=99) == 0
    assert kernel.write(b"x")[1:] == [fuse.notify_poll(99)]
    assert kernel.write(b"y")[1:] == []


def test_a_user_may_not_read_and_a_long_line_is_refused(kernel: Kernel):
    assert kernel.open(user=1000) == -errno.EPERM
    assert said(kernel.write(b"x" * 1025)[0]) == (errno.EINVAL, b"")


@pytest.mark.parametrize("opcode", [1, 5, 21, 22, 39, 43])
def test_what_is_no_business_of_a_log_is_not_implemented(kernel: Kernel, opcode: int):
    assert [said(answer)[0] for answer in kernel.ask(opcode, bytes(40))] == [errno.ENOSYS]


@given(st.lists(st.integers(min_value=1, max_value=300), max_size=60))
def test_a_ring_keeps_the_newest_without_a_gap(sizes: list[int]):
    ring = Ring(1000)
    for size in sizes:
        ring.add(priority=6, micros=0, text=b"x" * size)
    kept = [ring.get(number) for number in range(ring.oldest, ring.next)]
    assert ring.next == len(sizes)
    assert len(kept) <= 1 or sum(map(len, kept)) <= 1000
    assert [int(record.split(b",")[1]) for record in kept] == list(range(ring.oldest, ring.next))
