"""
One side of a data channel: sequence numbers, order, acknowledgements, retransmission.

Sources: ``src/datachannel/streaming.go`` of the plugin, ``agent/session/datachannel/datachannel.go`` of the agent. Both
resend the oldest unacknowledged message after a timeout from the round-trip time. This one also resends all of them,
in order, on a new connection: a cut loses the last messages of the previous one.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.session_manager.messages import ClientMessage, MessageError, MessageType, PayloadType
from holdfast.session_manager.payloads import Acknowledgement

PAYLOAD_BYTES = 1024
"""Of stream data (``StreamDataPayloadSize``)."""
MOST_WAITING = 10_000
"""Messages out of order that are kept (``IncomingMessageBufferCapacity``); others are not acknowledged."""
WINDOW = 1024
"""Unacknowledged messages, after which a sender waits."""
FIRST_TIMEOUT_S, LONGEST_TIMEOUT_S, CLOCK_S = 0.2, 1.0, 0.01
GIVE_UP_S = 300.0
"""Without an acknowledgement of the oldest message while connected (``ResendMaxAttempt``)."""
_SYN, _ACKNOWLEDGE_FLAGS = 1, 3


@dataclass(frozen=True, kw_only=True)
class Received:
    delivered: Sequence[ClientMessage] = ()
    """In order, each once."""
    replies: Sequence[bytes] = ()
    """To send: acknowledgements."""


@dataclass(kw_only=True)
class _Sent:
    raw: bytes
    first_s: float
    last_s: float


@dataclass(kw_only=True)
class DataStream:
    """``sends``: type of the own messages, ``input_stream_data`` of a client."""

    sends: MessageType
    paused: bool = False
    """True after ``pause_publication``, until the peer is heard of again."""
    _next_sent: int = 0
    _next_received: int = 0
    _unacknowledged: dict[int, _Sent] = field(default_factory=dict)
    _waiting: dict[int, ClientMessage] = field(default_factory=dict)
    _round_trip_s: float = 0.1
    _variation_s: float = 0.0
    _timeout_s: float = FIRST_TIMEOUT_S

    @property
    def has_room(self) -> bool:
        return len(self._unacknowledged) < WINDOW

    @property
    def is_drained(self) -> bool:
        return not self._unacknowledged

    def send(self, payload_type: PayloadType, payload: bytes, *, now_s: float) -> bytes:
        """Return the next message; it is kept until it is acknowledged. ``now_s``: since 1970."""
        number = self._next_sent
        raw = ClientMessage(
            message_type=self.sends,
            created_ms=int(now_s * 1000),
            message_id=uuid.uuid4(),
            payload=payload,
            payload_type=payload_type,
            sequence_number=number,
            flags=_SYN if number == 0 and self.sends == MessageType.OUTPUT else 0,
        ).encode()
        self._unacknowledged[number] = _Sent(raw=raw, first_s=now_s, last_s=now_s)
        self._next_sent += 1
        return raw

    def receive(self, message: ClientMessage, *, now_s: float) -> Received:
        """Process a message of the peer. Raises: MessageError: an acknowledgement that is none."""
        if message.message_type == MessageType.PAUSE_PUBLICATION:
            self.paused = True
            return Received()
        self.paused = False
        if message.message_type == MessageType.ACKNOWLEDGE:
            self._acknowledged(Acknowledgement.decode(message.payload).sequence_number, now_s=now_s)
            return Received()
        if message.message_type != self._receives:
            return Received()
        number = message.sequence_number
        if number < 0:
            raise MessageError(f"got sequence number {number}; allowed: 0 and above")
        if number > self._next_received and number not in self._waiting and len(self._waiting) >= MOST_WAITING:
            return Received()
        if number >= self._next_received:
            self._waiting.setdefault(number, message)
        delivered = []
        while (following := self._waiting.pop(self._next_received, None)) is not None:
            delivered.append(following)
            self._next_received += 1
        return Received(delivered=delivered, replies=[_acknowledgement(message, now_s=now_s)])

    def due(self, *, now_s: float) -> bytes | None:
        """Return the oldest unacknowledged message if its time is over."""
        if self.paused or not self._unacknowledged:
            return None
        oldest = next(iter(self._unacknowledged.values()))
        if now_s - oldest.last_s <= self._timeout_s:
            return None
        oldest.last_s = now_s
        return oldest.raw

    def resumed(self, *, now_s: float) -> list[bytes]:
        """Return what has to be sent on a new connection."""
        self.paused = False
        for one in self._unacknowledged.values():
            one.first_s = one.last_s = now_s
        return [one.raw for one in self._unacknowledged.values()]

    def has_given_up(self, *, now_s: float) -> bool:
        oldest = next(iter(self._unacknowledged.values()), None)
        return oldest is not None and now_s - oldest.first_s > GIVE_UP_S

    @property
    def _receives(self) -> MessageType:
        return MessageType.INPUT if self.sends == MessageType.OUTPUT else MessageType.OUTPUT

    def _acknowledged(self, number: int, *, now_s: float) -> None:
        sent = self._unacknowledged.pop(number, None)
        if sent is None:
            return
        took_s = max(now_s - sent.last_s, 0.0)
        self._variation_s += (abs(self._round_trip_s - took_s) - self._variation_s) / 4
        self._round_trip_s += (took_s - self._round_trip_s) / 8
        self._timeout_s = min(self._round_trip_s + max(CLOCK_S, 4 * self._variation_s), LONGEST_TIMEOUT_S)


def _acknowledgement(message: ClientMessage, *, now_s: float) -> bytes:
    content = Acknowledgement(
        message_type=message.message_type,
        message_id=str(message.message_id),
        sequence_number=message.sequence_number,
    )
    return ClientMessage(
        message_type=MessageType.ACKNOWLEDGE,
        created_ms=int(now_s * 1000),
        message_id=uuid.uuid4(),
        payload=content.encode(),
        flags=_ACKNOWLEDGE_FLAGS,
    ).encode()
