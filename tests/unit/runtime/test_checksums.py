"""A checksum of memory, however it is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.checksums import checksum_of


@pytest.mark.parametrize(
    ("data", "xxh3"),
    [(b"", 0x2D06800538D394C2), (b"a", 0xE6C632B61E964E1F), (b"abc", 0x78AF5F94892F3950)],
)
def test_it_is_the_low_half_of_xxh3(data: bytes, xxh3: int) -> None:
    assert checksum_of([data]) == xxh3 & 0xFFFF_FFFF


@given(data=st.binary(min_size=1, max_size=600), cuts=st.lists(st.integers(0, 600)))
def test_pieces_count_as_the_memory_that_they_are_cut_from(data: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [memoryview(data)[one:other] for one, other in pairwise(places)]
    assert checksum_of(pieces) == checksum_of([data])


@given(data=st.binary(min_size=1, max_size=600), at=st.integers(0, 599), change=st.integers(1, 255))
def test_a_changed_byte_is_seen_wherever_it_is(data: bytes, at: int, change: int) -> None:
    changed = bytearray(data)
    changed[at % len(data)] ^= change
    assert checksum_of([memoryview(changed)]) != checksum_of([data])


def test_words_that_change_places_are_seen() -> None:
    words = [number.to_bytes(8, "little") for number in range(512)]
    before = checksum_of(words)
    words[3], words[400] = words[400], words[3]
    assert checksum_of(words) != before


def test_signs_that_change_in_pairs_are_seen() -> None:
    assert checksum_of([bytes(4096)]) != checksum_of([bytes([0, 0, 0, 0x80]) * 1024])
