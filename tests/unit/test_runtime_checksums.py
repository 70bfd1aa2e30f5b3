"""A checksum of sums: what it sees, and where it does not look."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.checksums import ROW_BYTES, checksum_of


def plain(data: bytes) -> int:
    """The same by the words of its description."""
    whole = len(data) // ROW_BYTES * ROW_BYTES
    sums = b"".join(
        (
            sum(int.from_bytes(data[at : at + 8], "little") for at in range(row, row + ROW_BYTES, 8)) % (1 << 64)
        ).to_bytes(8, "little")
        for row in range(0, whole, ROW_BYTES)
    )
    return zlib.crc32(data[whole:], zlib.crc32(sums))


def random_bytes(count: int) -> bytes:
    return np.random.default_rng(count).bytes(count)


@pytest.mark.parametrize("size", [0, 1, 7, ROW_BYTES - 1, ROW_BYTES, 3 * ROW_BYTES + 5])
def test_it_is_the_crc_of_the_sums_of_rows_and_of_what_is_left(size: int) -> None:
    assert checksum_of([random_bytes(size)]) == plain(random_bytes(size))


@given(at=st.integers(0, 3 * ROW_BYTES + 4), change=st.integers(1, 255))
def test_a_changed_byte_is_seen_wherever_it_is(at: int, change: int) -> None:
    data = bytearray(random_bytes(3 * ROW_BYTES + 5))
    before = checksum_of([memoryview(data)])
    data[at] ^= change
    assert checksum_of([memoryview(data)]) != before


def test_rows_that_change_places_are_seen() -> None:
    one, other = random_bytes(2 * ROW_BYTES)[:ROW_BYTES], random_bytes(2 * ROW_BYTES)[ROW_BYTES:]
    assert checksum_of([one + other]) != checksum_of([other + one])


def test_pieces_that_change_places_are_seen() -> None:
    first, second = random_bytes(ROW_BYTES), random_bytes(ROW_BYTES + 9)
    assert checksum_of([first, second]) != checksum_of([second, first])


def test_memory_that_begins_at_an_odd_address_has_the_same_checksum() -> None:
    data = random_bytes(2 * ROW_BYTES + 1)
    assert checksum_of([memoryview(data)[1:]]) == checksum_of([data[1:]])
