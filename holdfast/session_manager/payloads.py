"""
Payloads in JSON, and flags.

Each has ``encode`` and ``decode``, which raises MessageError for anything else. Unknown members are ignored, as by
AWS's peers.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from holdfast.session_manager.messages import MessageError

SUCCESS, FAILED, UNSUPPORTED = 1, 2, 3
"""Status of a processed action."""


class Flag(IntEnum):
    DISCONNECT_TO_PORT = 1
    TERMINATE_SESSION = 2
    CONNECT_TO_PORT_ERROR = 3

    def encode(self) -> bytes:
        return struct.pack(">I", self)


def flag_of(payload: bytes) -> Flag:
    """Parse the payload of a flag. Raises: MessageError."""
    try:
        return Flag(struct.unpack(">I", payload)[0])
    except (struct.error, ValueError):
        raise MessageError(f"got a flag of {len(payload)} bytes with an unknown value") from None


@dataclass(frozen=True, kw_only=True)
class OpenDataChannel:
    """First message of a client, as text (``src/service/service.go``)."""

    request_id: str
    token: str
    client_id: str
    client_version: str

    def encode(self) -> str:
        return json.dumps({
            "MessageSchemaVersion": "1.0",
            "RequestId": self.request_id,
            "TokenValue": self.token,
            "ClientId": self.client_id,
            "ClientVersion": self.client_version,
        })  # fmt: skip

    @staticmethod
    def decode(text: str | bytes) -> "OpenDataChannel":
        given = _object(text)
        return OpenDataChannel(
            request_id=_text(given, "RequestId"),
            token=_text(given, "TokenValue"),
            client_id=_text(given, "ClientId"),
            client_version=_text(given, "ClientVersion"),
        )


@dataclass(frozen=True, kw_only=True)
class Acknowledgement:
    message_type: str
    message_id: str
    sequence_number: int

    def encode(self) -> bytes:
        return _bytes({
            "AcknowledgedMessageType": self.message_type,
            "AcknowledgedMessageId": self.message_id,
            "AcknowledgedMessageSequenceNumber": self.sequence_number,
            "IsSequentialMessage": True,
        })  # fmt: skip

    @staticmethod
    def decode(payload: bytes) -> "Acknowledgement":
        given = _object(payload)
        return Acknowledgement(
            message_type=_text(given, "AcknowledgedMessageType"),
            message_id=_text(given, "AcknowledgedMessageId"),
            sequence_number=_whole(given, "AcknowledgedMessageSequenceNumber"),
        )


@dataclass(frozen=True, kw_only=True)
class ChannelClosed:
    session_id: str
    message_id: str
    created: str
    destination_id: str = ""
    output: str = ""
    """Reason; empty at an ordinary end."""

    def encode(self) -> bytes:
        return _bytes({
            "MessageId": self.message_id,
            "CreatedDate": self.created,
            "DestinationId": self.destination_id,
            "SessionId": self.session_id,
            "MessageType": "channel_closed",
            "SchemaVersion": 1,
            "Output": self.output,
        })  # fmt: skip

    @staticmethod
    def decode(payload: bytes) -> "ChannelClosed":
        given = _object(payload)
        return ChannelClosed(
            session_id=_text(given, "SessionId"),
            message_id=_text(given, "MessageId"),
            created=_text(given, "CreatedDate"),
            destination_id=_text(given, "DestinationId"),
            output=_text(given, "Output"),
        )


@dataclass(frozen=True, kw_only=True)
class RequestedAction:
    kind: str
    """``SessionType`` or ``KMSEncryption``."""
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class HandshakeRequest:
    agent_version: str
    actions: Sequence[RequestedAction]

    def encode(self) -> bytes:
        actions = [{"ActionType": one.kind, "ActionParameters": dict(one.parameters)} for one in self.actions]
        return _bytes({"AgentVersion": self.agent_version, "RequestedClientActions": actions})

    @staticmethod
    def decode(payload: bytes) -> "HandshakeRequest":
        given = _object(payload)
        actions = [
            RequestedAction(kind=_text(one, "ActionType"), parameters=_inner(one, "ActionParameters"))
            for one in _objects(given, "RequestedClientActions")
        ]
        return HandshakeRequest(agent_version=_text(given, "AgentVersion"), actions=actions)


@dataclass(frozen=True, kw_only=True)
class ProcessedAction:
    kind: str
    status: int = SUCCESS
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class HandshakeResponse:
    client_version: str
    actions: Sequence[ProcessedAction]

    def encode(self) -> bytes:
        actions = [
            {"ActionType": one.kind, "ActionStatus": one.status, "ActionResult": None, "Error": one.error}
            for one in self.actions
        ]
        errors = [one.error for one in self.actions if one.error]
        return _bytes({"ClientVersion": self.client_version, "ProcessedClientActions": actions, "Errors": errors})

    @staticmethod
    def decode(payload: bytes) -> "HandshakeResponse":
        given = _object(payload)
        actions = [
            ProcessedAction(
                kind=_text(one, "ActionType"), status=_whole(one, "ActionStatus"), error=_text(one, "Error")
            )
            for one in _objects(given, "ProcessedClientActions")
        ]
        return HandshakeResponse(client_version=_text(given, "ClientVersion"), actions=actions)

    @property
    def failed(self) -> str:
        """Reason why an action was not processed; empty if all were."""
        return next((one.error or f"{one.kind} failed" for one in self.actions if one.status != SUCCESS), "")


@dataclass(frozen=True, kw_only=True)
class HandshakeComplete:
    took_ns: int
    message: str = ""
    """For the user."""

    def encode(self) -> bytes:
        return _bytes({"HandshakeTimeToComplete": self.took_ns, "CustomerMessage": self.message})

    @staticmethod
    def decode(payload: bytes) -> "HandshakeComplete":
        given = _object(payload)
        return HandshakeComplete(
            took_ns=_whole(given, "HandshakeTimeToComplete"), message=_text(given, "CustomerMessage")
        )


@dataclass(frozen=True, kw_only=True)
class TerminalSize:
    columns: int
    rows: int

    def encode(self) -> bytes:
        return _bytes({"cols": self.columns, "rows": self.rows})

    @staticmethod
    def decode(payload: bytes) -> "TerminalSize":
        given = _object(payload)
        size = TerminalSize(columns=_whole(given, "cols"), rows=_whole(given, "rows"))
        if not (0 <= size.columns <= 0xFFFF and 0 <= size.rows <= 0xFFFF):
            raise MessageError(f"got a terminal of {size.columns} by {size.rows}; allowed: 0 to 65535")
        return size


def _bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"a payload is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise MessageError("a payload is not a JSON object")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if value is not None and not isinstance(value, str):
        raise MessageError(f"{name} of a payload is not text")
    return value or ""


def _whole(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MessageError(f"{name} of a payload is not a whole number")
    return value


def _inner(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name) or {}
    if not isinstance(value, dict):
        raise MessageError(f"{name} of a payload is not an object")
    return value


def _objects(given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = given.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise MessageError(f"{name} of a payload is not a list of objects")
    return value
