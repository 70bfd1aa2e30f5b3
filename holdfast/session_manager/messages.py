"""
Binary messages of the data channel.

Layout (``src/message/clientmessage.go``), big endian: header length 4, type 32, schema version 4, created 8, sequence
number 8, flags 8, message id 16, SHA-256 of the payload 32, payload type 4, payload length 4, payload.
"""

import hashlib
import struct
import uuid
from dataclasses import dataclass
from enum import IntEnum, StrEnum

_HEADER = struct.Struct(">I32sIQqQ16s32sII")
HEADER_LENGTH = _HEADER.size - 4
"""Value of the first field, which leaves out the payload length."""
MOST_BYTES = 256 << 10
"""Largest message that is read; AWS's peers send payloads of 1 KiB, handshakes apart."""


class MessageError(Exception): ...


class MessageType(StrEnum):
    INPUT = "input_stream_data"
    OUTPUT = "output_stream_data"
    ACKNOWLEDGE = "acknowledge"
    CHANNEL_CLOSED = "channel_closed"
    START_PUBLICATION = "start_publication"
    PAUSE_PUBLICATION = "pause_publication"
    AGENT_SESSION_STATE = "agent_session_state"


class PayloadType(IntEnum):
    NONE = 0
    OUTPUT = 1
    ERROR = 2
    SIZE = 3
    PARAMETER = 4
    HANDSHAKE_REQUEST = 5
    HANDSHAKE_RESPONSE = 6
    HANDSHAKE_COMPLETE = 7
    ENCRYPTION_CHALLENGE_REQUEST = 8
    ENCRYPTION_CHALLENGE_RESPONSE = 9
    FLAG = 10
    STDERR = 11
    EXIT_CODE = 12


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    message_type: str
    created_ms: int
    message_id: uuid.UUID
    payload: bytes = b""
    payload_type: int = PayloadType.NONE
    sequence_number: int = 0
    flags: int = 0
    schema_version: int = 1

    def encode(self) -> bytes:
        """Return the message. Raises: MessageError: a field that does not fit."""
        name = self.message_type.encode()
        if len(name) > 32:
            raise MessageError(f"got a message type of {len(name)} bytes; allowed: 32")
        most, least = self.message_id.bytes[:8], self.message_id.bytes[8:]
        try:
            header = _HEADER.pack(
                HEADER_LENGTH,
                name.ljust(32),
                self.schema_version,
                self.created_ms,
                self.sequence_number,
                self.flags,
                least + most,
                hashlib.sha256(self.payload).digest(),
                self.payload_type,
                len(self.payload),
            )
        except struct.error as error:
            raise MessageError(f"a field of the message does not fit: {error}") from None
        return header + self.payload

    @staticmethod
    def decode(raw: bytes) -> "ClientMessage":
        """Parse a message. Raises: MessageError: too short, too large, or a digest that is not the payload's."""
        if len(raw) > MOST_BYTES:
            raise MessageError(f"got a message of {len(raw)} bytes; allowed: {MOST_BYTES}")
        if len(raw) < _HEADER.size:
            raise MessageError(f"got a message of {len(raw)} bytes; allowed: at least {_HEADER.size}")
        length, name, version, created, number, flags, swapped, digest, kind, size = _HEADER.unpack_from(raw)
        payload = raw[length + 4 :]
        if length < HEADER_LENGTH or size != len(payload):
            raise MessageError(
                f"got header length {length} and payload length {size} in a message of {len(raw)} bytes; "
                f"allowed: a header of at least {HEADER_LENGTH} bytes, and the length of the rest"
            )
        message = ClientMessage(
            message_type=name.strip(b"\0 ").decode(errors="replace"),
            schema_version=version,
            created_ms=created,
            sequence_number=number,
            flags=flags,
            message_id=uuid.UUID(bytes=swapped[8:] + swapped[:8]),
            payload_type=kind,
            payload=payload,
        )
        message._check(digest)
        return message

    def _check(self, digest: bytes) -> None:
        if self.message_type in (MessageType.START_PUBLICATION, MessageType.PAUSE_PUBLICATION):
            return
        if not self.message_type or not self.created_ms:
            raise MessageError("got a message without type or date")
        if self.payload and hashlib.sha256(self.payload).digest() != digest:
            raise MessageError("the payload has not the digest of its header")
