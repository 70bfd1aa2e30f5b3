"""
The token file: what its bytes mean. One header, the tokens, the offsets of the documents.

    0      header of 256 bytes, little-endian, with a CRC-32 of itself
    256    tokens, as int16, uint16 or int32
    ...    zeros up to a multiple of 8
    ...    documents + 1 offsets, uint64: document i is tokens[offset[i]:offset[i + 1]]

The size follows from the header, so a truncated file is refused when it is opened, without reading it. The digest
covers everything behind the header and takes a full read: that is what ``verify`` is for.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"HFTOKENS"
VERSION = 1
HEADER_BYTES = 256
DIGEST_BYTES = 32
OFFSET = np.dtype("<u8")
TokenType = np.dtype[np.signedinteger[Any]] | np.dtype[np.unsignedinteger[Any]]
DTYPES: dict[int, TokenType] = {1: np.dtype("<i2"), 2: np.dtype("<u2"), 3: np.dtype("<i4")}
NO_END = -1
"""End token of files whose documents end without one."""

_LAYOUT = struct.Struct("<8sIIQQQq32s96s")
_CRC = struct.Struct("<I")
_NAME_BYTES = 96


class DataError(Exception):
    """Data that cannot be used, with what is wrong and what to do. Its text is meant for the user."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """Header of a token file."""

    dtype: TokenType
    tokens: int
    documents: int
    vocabulary_size: int
    end_token: int
    """Last token of each document; NO_END without one."""
    tokenizer: str
    digest: bytes
    """BLAKE2b of all that follows the header."""

    @property
    def offsets_at(self) -> int:
        """Position of the offsets, in bytes."""
        end = HEADER_BYTES + self.tokens * self.dtype.itemsize
        return end + -end % OFFSET.itemsize

    @property
    def size(self) -> int:
        """Of the whole file, in bytes."""
        return self.offsets_at + (self.documents + 1) * OFFSET.itemsize

    def pack(self) -> bytes:
        """The first bytes of the file."""
        name = self.tokenizer.encode()
        if len(name) > _NAME_BYTES:
            raise DataError(f"the tokenizer's name is longer than {_NAME_BYTES} bytes: {self.tokenizer}")
        codes = {dtype: code for code, dtype in DTYPES.items()}
        fields = _LAYOUT.pack(
            MAGIC,
            VERSION,
            codes[self.dtype],
            self.tokens,
            self.documents,
            self.vocabulary_size,
            self.end_token,
            self.digest,
            name,
        )
        body = fields.ljust(HEADER_BYTES - _CRC.size, b"\0")
        return body + _CRC.pack(zlib.crc32(body))


def parse_header(data: bytes, *, path: Path) -> Header:
    if data[: len(MAGIC)] != MAGIC:
        raise DataError(f"{path} is no token file: it does not begin with {MAGIC.decode()}; build it with {_BUILD}")
    if len(data) < HEADER_BYTES:
        raise DataError(f"{path} ends inside its header, after {len(data)} bytes; copy or build it again")
    body, crc = data[: HEADER_BYTES - _CRC.size], data[HEADER_BYTES - _CRC.size : HEADER_BYTES]
    if _CRC.unpack(crc)[0] != zlib.crc32(body):
        raise DataError(f"the header of {path} is damaged (its CRC does not match); copy or build the file again")
    _, version, code, tokens, documents, vocabulary, end, digest, name = _LAYOUT.unpack_from(body)
    if version != VERSION:
        raise DataError(f"{path} has format version {version}, and this is version {VERSION}; build it again")
    if code not in DTYPES:
        raise DataError(f"{path} has token type {code}, and {sorted(DTYPES)} are known; build it again")
    return Header(
        dtype=DTYPES[code],
        tokens=tokens,
        documents=documents,
        vocabulary_size=vocabulary,
        end_token=end,
        tokenizer=name.rstrip(b"\0").decode(),
        digest=digest,
    )


def smallest_dtype(vocabulary_size: int) -> TokenType:
    for dtype in DTYPES.values():
        if 0 < vocabulary_size <= int(np.iinfo(dtype).max) + 1:
            return dtype
    raise DataError(f"a vocabulary of {vocabulary_size} tokens fits none of int16, uint16, int32")


def known_dtype(name: str) -> TokenType:
    for dtype in DTYPES.values():
        if dtype.name == name:
            return dtype
    raise DataError(f"token type {name} is not known; use one of {', '.join(item.name for item in DTYPES.values())}")


_BUILD = "python -m holdfast_runtime.data build"
