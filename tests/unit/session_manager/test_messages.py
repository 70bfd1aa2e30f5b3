"""
Messages with the values of the plugin's own tests.

Source: aws/session-manager-plugin, commit 61cf1288, src/message/messageparser_test.go (Apache-2.0).
"""

import hashlib
import json
import struct
import uuid

import pytest

from holdfast.session_manager import (
    MOST_BYTES,
    Acknowledgement,
    ChannelClosed,
    ClientMessage,
    Flag,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
    MessageError,
    OpenDataChannel,
    ProcessedAction,
    TerminalSize,
    flag_of,
)

MESSAGE_ID = "dd01e56b-ff48-483e-a508-b5f073f31b16"
CREATED = 1503434274948
SESSION_ID = "sessionId_01234567890abcedf"


def vector(**changed):
    values = {
        "message_type": "input_stream_data",
        "schema_version": 1,
        "created_ms": CREATED,
        "sequence_number": 1,
        "flags": 2,
        "message_id": uuid.UUID(MESSAGE_ID),
        "payload": b"payload",
    }
    return ClientMessage(**{**values, **changed})


def test_a_message_has_the_plugins_layout():
    raw = vector().encode()
    assert struct.unpack_from(">I", raw, 0) == (116,)
    assert raw[4:36] == b"input_stream_data".ljust(32)
    assert struct.unpack_from(">IQqQ", raw, 36) == (1, CREATED, 1, 2)
    # Least significant half of the id first.
    assert raw[64:80].hex() == "a508b5f073f31b16" + "dd01e56bff48483e"
    assert raw[80:112] == hashlib.sha256(b"payload").digest()
    assert struct.unpack_from(">II", raw, 112) == (0, 7)
    assert raw[120:] == b"payload"


def test_a_message_is_read_as_it_was_written():
    assert ClientMessage.decode(vector().encode()) == vector()


def test_a_name_that_is_padded_with_zeros_is_read_too():
    raw = bytearray(vector().encode())
    raw[4:36] = b"input_stream_data".ljust(32, b"\0")
    assert ClientMessage.decode(bytes(raw)) == vector()


def test_a_longer_header_is_skipped():
    raw = vector().encode()
    longer = struct.pack(">I", 120) + raw[4:116] + raw[116:120] + b"more" + raw[120:]
    assert ClientMessage.decode(longer).payload == b"payload"


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, b"\0\0\0\0"), (0, b"\0\0\0\x10"), (0, b"\xff\xff\xff\xff"), (80, b"x"), (116, b"\0\0\0\x08"), (120, b"P")],
)
def test_a_damaged_message_is_refused(at, value):
    raw = bytearray(vector().encode())
    raw[at : at + len(value)] = value
    with pytest.raises(MessageError):
        ClientMessage.decode(bytes(raw))


@pytest.mark.parametrize("length", [0, 1, 116, 119])
def test_a_short_message_is_refused(length):
    with pytest.raises(MessageError, match="at least 120"):
        ClientMessage.decode(vector().encode()[:length])


def test_an_oversize_message_is_refused():
    with pytest.raises(MessageError, match="allowed: 262144"):
        ClientMessage.decode(vector(payload=bytes(MOST_BYTES)).encode())


def test_a_message_without_date_or_type_is_refused_and_a_publication_message_is_not():
    for changed in ({"created_ms": 0}, {"message_type": ""}):
        with pytest.raises(MessageError, match="without type or date"):
            ClientMessage.decode(vector(**changed).encode())
    assert ClientMessage.decode(vector(message_type="start_publication", created_ms=0).encode()).payload == b"payload"


def test_a_type_of_33_bytes_does_not_fit():
    with pytest.raises(MessageError, match="allowed: 32"):
        vector(message_type="x" * 33).encode()


def test_an_acknowledgement_is_the_plugins():
    text = f'{{"AcknowledgedMessageType": "acknowledge", "AcknowledgedMessageId":"{MESSAGE_ID}"}}'
    assert Acknowledgement.decode(text.encode()).message_id == MESSAGE_ID
    sent = Acknowledgement(message_type="input_stream_data", message_id=MESSAGE_ID, sequence_number=2)
    assert Acknowledgement.decode(sent.encode()) == sent
    assert json.loads(sent.encode())["IsSequentialMessage"] is True


def test_a_closed_channel_is_the_plugins():
    text = (
        f'{{"MessageType": "channel_closed", "MessageId": "{MESSAGE_ID}", "CreatedDate": "{CREATED}", '
        f'"SessionId": "{SESSION_ID}", "SchemaVersion": 1, "Output": "payload"}}'
    )
    closed = ChannelClosed.decode(text.encode())
    assert (closed.session_id, closed.output, closed.created) == (SESSION_ID, "payload", str(CREATED))
    assert ChannelClosed.decode(closed.encode()) == closed


def test_a_handshake_is_the_plugins():
    text = (
        b'{"AgentVersion": "3.0", "RequestedClientActions": '
        b'[{"ActionType": "start", "ActionParameters": {"name": "richard"}}]}'
    )
    request = HandshakeRequest.decode(text)
    assert request.agent_version == "3.0"
    assert [(one.kind, one.parameters) for one in request.actions] == [("start", {"name": "richard"})]
    complete = HandshakeComplete.decode(
        b'{"HandshakeTimeToComplete": 1000000, "CustomerMessage": "Handshake Complete"}'
    )
    assert (complete.took_ns, complete.message) == (1_000_000, "Handshake Complete")


def test_the_plugins_answer_to_a_handshake_is_read():
    text = (
        b'{"ClientVersion":"1.2.0.0","ProcessedClientActions":[{"ActionType":"SessionType","ActionStatus":1,'
        b'"ActionResult":null,"Error":""}],"Errors":null}'
    )
    assert HandshakeResponse.decode(text).failed == ""
    failed = HandshakeResponse(
        client_version="1", actions=[ProcessedAction(kind="KMSEncryption", status=2, error="no key")]
    )
    assert HandshakeResponse.decode(failed.encode()).failed == "no key"


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"null", b"{", b'{"cols": "80", "rows": 24}', b'{"cols": -1}', b'{"cols": 70000}', b"[" * 9999],
)
def test_what_is_no_payload_is_refused(payload):
    with pytest.raises(MessageError):
        TerminalSize.decode(payload)


def test_flags_and_sizes_are_read_as_written():
    assert Flag.TERMINATE_SESSION.encode() == b"\0\0\0\x02"
    assert [flag_of(one.encode()) for one in Flag] == list(Flag)
    for wrong in (b"", b"\0\0\0\x09", b"\0\0\0\x01\0"):
        with pytest.raises(MessageError):
            flag_of(wrong)
    assert TerminalSize.decode(b'{"cols": 80, "rows": 24}') == TerminalSize(columns=80, rows=24)


def test_the_opening_has_the_token():
    opening = OpenDataChannel(request_id="r" * 36, token="secret", client_id="c", client_version="1.2.0.0")
    assert json.loads(opening.encode())["TokenValue"] == "secret"
    assert OpenDataChannel.decode(opening.encode()) == opening
