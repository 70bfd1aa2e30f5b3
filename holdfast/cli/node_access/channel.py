"""
Data channel of a session, from the client's side; resumed after cuts.

Single-threaded, for the reason that ``holdfast.cli.kubernetes.execution`` names.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.cli.node_access.api import CLIENT_VERSION, SessionApi, StartedSession
from holdfast.session_manager import (
    MOST_BYTES,
    PAYLOAD_BYTES,
    ChannelClosed,
    ClientMessage,
    DataStream,
    HandshakeRequest,
    HandshakeResponse,
    MessageError,
    MessageType,
    OpenDataChannel,
    PayloadType,
    ProcessedAction,
)

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

MOST_CUTS = 5
"""In a row, without a message in between (``DataChannelNumMaxRetries``)."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
OPEN_S, CLOSE_S, RESEND_EVERY_S, PING_EVERY_S = 15.0, 1.0, 0.1, 300.0
_KNOWN_TYPES = ("Standard_Stream", "InteractiveCommands", "NonInteractiveCommands", "Port")
_OF_OUTPUT = (PayloadType.OUTPUT, PayloadType.ERROR, PayloadType.STDERR)


class ChannelError(Exception):
    """The session was lost or refused."""


class DataChannel:
    def __init__(self, api: SessionApi, started: StartedSession, *, on_output: Callable[[bytes], None]) -> None:
        self._api = api
        self._started = started
        self._on_output = on_output
        self._stream = DataStream(sends=MessageType.INPUT)
        self._line: ClientConnection | None = None
        self._ready = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._refusal = ""
        self._heard = False

    async def run(self) -> str:
        """Return the reason of the session's end, mostly empty. Raises: ChannelError, AwsError."""
        token, cuts = self._started.token, 0
        while True:
            self._heard = False
            why = await self._connection(token)
            if isinstance(why, ChannelClosed):
                if self._refusal:
                    raise ChannelError(self._refusal)
                return why.output
            cuts = 1 if self._heard else cuts + 1
            if cuts > MOST_CUTS:
                raise ChannelError(f"session {self._started.session_id} was lost: {why}")
            await asyncio.sleep(min(FIRST_PAUSE_S * 2**cuts, LONGEST_PAUSE_S))
            token = await asyncio.to_thread(self._api.resume, self._started.session_id)
            if not token:
                raise ChannelError(f"session {self._started.session_id} timed out")

    async def send(self, data: bytes, payload_type: PayloadType = PayloadType.OUTPUT) -> None:
        """Send input in parts, once the handshake is over and as acknowledgements allow."""
        await self._ready.wait()
        for at in range(0, len(data), PAYLOAD_BYTES):
            while not self._stream.has_room:
                self._acknowledged.clear()
                await self._acknowledged.wait()
            await self._transmit(self._stream.send(payload_type, data[at : at + PAYLOAD_BYTES], now_s=time.time()))

    async def _connection(self, token: str) -> ChannelClosed | str:
        """Serve one connection; return the closing message, or why there was none."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException

        url = self._started.url
        is_local = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
        try:
            async with connect(
                url,
                compression=None,
                max_size=MOST_BYTES,
                proxy=None if is_local else True,
                open_timeout=OPEN_S,
                close_timeout=CLOSE_S,
                ping_interval=PING_EVERY_S,
                ping_timeout=None,
            ) as line:
                return await self._served(line, token)
        except (OSError, TimeoutError, WebSocketException, MessageError) as error:
            return str(error) or type(error).__name__

    async def _served(self, line: "ClientConnection", token: str) -> ChannelClosed | str:
        opening = OpenDataChannel(
            request_id=str(uuid.uuid4()), token=token, client_id=str(uuid.uuid4()), client_version=CLIENT_VERSION
        )
        await line.send(opening.encode())
        for raw in self._stream.resumed(now_s=time.time()):
            await line.send(raw)
        self._line = line
        resending = asyncio.create_task(self._resend())
        try:
            async for received in line:
                raw = received.encode() if isinstance(received, str) else received
                closing = await self._received(ClientMessage.decode(raw))
                if closing is not None:
                    return closing
        finally:
            self._line = None
            resending.cancel()
        return "the connection was closed"

    async def _received(self, message: ClientMessage) -> ChannelClosed | None:
        self._heard = True
        if message.message_type == MessageType.CHANNEL_CLOSED:
            return ChannelClosed.decode(message.payload)
        found = self._stream.receive(message, now_s=time.time())
        if message.message_type == MessageType.ACKNOWLEDGE:
            self._acknowledged.set()
        for raw in found.replies:
            await self._transmit(raw)
        for one in found.delivered:
            await self._deliver(one)
        return None

    async def _deliver(self, message: ClientMessage) -> None:
        if message.payload_type == PayloadType.HANDSHAKE_REQUEST:
            response = _response(HandshakeRequest.decode(message.payload))
            self._refusal = response.failed
            raw = self._stream.send(PayloadType.HANDSHAKE_RESPONSE, response.encode(), now_s=time.time())
            await self._transmit(raw)
        elif message.payload_type == PayloadType.HANDSHAKE_COMPLETE:
            self._ready.set()
        elif message.payload_type in _OF_OUTPUT:
            self._ready.set()  # of agents without a handshake
            self._on_output(message.payload)

    async def _transmit(self, raw: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        if self._line is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._line.send(raw)

    async def _resend(self) -> None:
        while True:
            await asyncio.sleep(RESEND_EVERY_S)
            raw = self._stream.due(now_s=time.time())
            if raw is not None:
                await self._transmit(raw)


def _response(request: HandshakeRequest) -> HandshakeResponse:
    actions = []
    for one in request.actions:
        error = ""
        if one.kind == "KMSEncryption":
            error = (
                "the session preferences of this account require KMS encryption, which Holdfast's client lacks; use: "
                "aws ssm start-session"
            )
        elif one.kind != "SessionType" or one.parameters.get("SessionType") not in _KNOWN_TYPES:
            error = f"got action {one.kind} {one.parameters.get('SessionType', '')}; allowed: SessionType"
        actions.append(ProcessedAction(kind=one.kind, status=2 if error else 1, error=error))
    return HandshakeResponse(client_version=CLIENT_VERSION, actions=actions)
