"""The echo request that asks whether an instance's network answers."""

import struct

import pytest

from holdfast.localcloud.hyperpod.network import echo_request


@pytest.mark.parametrize("sequence", [0, 1, 0xB7B9, 0xFFFF])
def test_the_checksum_of_an_echo_request_is_right(sequence: int) -> None:
    """RFC 1071: the one's complement sum of a message that holds its own checksum is all ones."""
    total = sum(struct.unpack("!4H", echo_request(sequence)))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)

    assert total == 0xFFFF
