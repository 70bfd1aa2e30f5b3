"""
The CRC-32 of sums instead of the bytes themselves: reading memory once is nearly all that it costs.

State is copied when all others wait for it, and a CRC of all of it takes longer there than the copy (ADR 322).
"""

import zlib
from collections.abc import Iterable

import numpy as np

ROW_WORDS = 512
ROW_BYTES = 8 * ROW_WORDS


def checksum_of(pieces: Iterable[memoryview | bytes]) -> int:
    """
    32 bits of pieces of memory; the same only where they are cut the same.

    Each piece is taken as rows of 4 KiB, of which the 64-bit words are added up, modulo 2^64. The sums and what is left
    of the piece go through a CRC-32. So any change of one word is seen, and any exchange of rows; changes of several
    words of one row are not where they cancel each other. It is for bytes that are damaged on their way; whether two
    states are equal is a question for a CRC, which sees words that changed places, too.
    """
    checksum = 0
    for piece in pieces:
        whole = len(piece) // ROW_BYTES
        if whole:
            words = np.frombuffer(piece, dtype=np.uint64, count=whole * ROW_WORDS)
            checksum = zlib.crc32(np.add.reduce(words.reshape(whole, ROW_WORDS), axis=1), checksum)
        checksum = zlib.crc32(piece[whole * ROW_BYTES :], checksum)
    return checksum
