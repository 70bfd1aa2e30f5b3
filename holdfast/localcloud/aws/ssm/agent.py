"""
Agent of one session: handshake, then the plugin of its type.

Sources: ``agent/session/plugins/sessionplugin/sessionplugin.go`` and ``agent/session/datachannel/datachannel.go`` of
amazon-ssm-agent.
"""

import contextlib
import logging
import queue
import threading
import time
import uuid
from typing import Protocol

from holdfast.localcloud.aws.ssm.machine import Machine
from holdfast.localcloud.aws.ssm.plugins import Plugin, plugin_of
from holdfast.session_manager import (
    PAYLOAD_BYTES,
    ChannelClosed,
    ClientMessage,
    DataStream,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
    MessageError,
    MessageType,
    PayloadType,
    RequestedAction,
    SessionPlan,
)

log = logging.getLogger(__name__)

AGENT_VERSION = "3.3.0.0"
HANDSHAKE_S = 30.0
"""Assumed: the agent's own deadline is longer."""
DRAIN_S = 2.0
"""For acknowledgements after the end (``PrepareToCloseChannel``)."""
RESUME_S = 5 * 60.0
"""For a client that was cut off; assumed."""
MOST_INPUT = 4096
RESEND_EVERY_S = 0.1


class Connection(Protocol):
    def send(self, data: bytes) -> None: ...

    def close(self, code: int = 1000, reason: str = "") -> None: ...


class Agent:
    """Survives its connections; ``terminate`` and ``receive`` from any thread."""

    def __init__(self, *, session_id: str, target: str, machine: Machine, plan: SessionPlan) -> None:
        self._session_id = session_id
        self._target = target
        self._machine = machine
        self._plan = plan
        self._stream = DataStream(sends=MessageType.OUTPUT)
        self._changed = threading.Condition()
        self._line: Connection | None = None
        self._plugin: Plugin | None = None
        self._input: queue.Queue[ClientMessage | None] = queue.Queue(maxsize=MOST_INPUT)
        self._began_s = 0.0
        self._active_s = self._detached_s = time.monotonic()
        self._ending = False
        self.has_ended = False

    # --- of the service

    def attach(self, line: Connection) -> None:
        """Use this connection in place of any previous one."""
        with self._changed:
            previous, self._line = self._line, line
            is_first = not self._began_s
            if is_first:
                self._began_s = time.time()
            else:
                self._transmit(*self._stream.resumed(now_s=time.time()))
            self._changed.notify_all()
        if previous is not None:
            previous.close(1000, "resumed elsewhere")
        if is_first:
            for work in (self._resend, self._process_input):
                threading.Thread(target=work, name=self._session_id, daemon=True).start()
            self._send(PayloadType.HANDSHAKE_REQUEST, self._handshake().encode())

    def detach(self, line: Connection) -> None:
        with self._changed:
            if self._line is line:
                self._line, self._detached_s = None, time.monotonic()

    def receive(self, raw: bytes) -> None:
        """Process a message of the client. Raises: MessageError."""
        message = ClientMessage.decode(raw)
        with self._changed:
            received = self._stream.receive(message, now_s=time.time())
            self._transmit(*received.replies)
            self._changed.notify_all()
        for one in received.delivered:
            self._active_s = time.monotonic()
            self._input.put(one)

    def idle_since(self, now_s: float) -> float:
        return now_s - self._active_s

    def detached_since(self, now_s: float) -> float:
        with self._changed:
            return now_s - self._detached_s if self._line is None else 0.0

    def terminate(self, reason: str = "") -> None:
        """End the program and the session; the client gets ``reason``."""
        if self._plugin is not None:
            self._plugin.stop()
        self.finish(reason, resume_s=0.0)

    # --- of the plugin

    def output(self, data: bytes, payload_type: PayloadType = PayloadType.OUTPUT) -> bool:
        """Send data in parts, waiting while too many are unacknowledged; False if the session has ended."""
        for at in range(0, len(data), PAYLOAD_BYTES):
            with self._changed:
                self._changed.wait_for(lambda: self.has_ended or (self._stream.has_room and not self._stream.paused))
                if self.has_ended:
                    return False
            self._send(payload_type, data[at : at + PAYLOAD_BYTES])
            self._active_s = time.monotonic()
        return True

    def finish(self, reason: str = "", *, resume_s: float = RESUME_S) -> None:
        """Close the channel once all output is acknowledged, after ``DRAIN_S`` or ``resume_s`` without progress."""
        with self._changed:
            if self._ending:
                return
            self._ending = True
            while self._line is None or not self._stream.is_drained:
                if not self._changed.wait(timeout=DRAIN_S if self._line is not None else resume_s):
                    break
            closing = ChannelClosed(
                session_id=self._session_id,
                message_id=str(uuid.uuid4()),
                created=str(int(time.time() * 1000)),
                destination_id=self._target,
                output=reason,
            )
            message = ClientMessage(
                message_type=MessageType.CHANNEL_CLOSED,
                created_ms=int(time.time() * 1000),
                message_id=uuid.uuid4(),
                payload=closing.encode(),
            )
            self._transmit(message.encode())
            self.has_ended = True
            line, self._line = self._line, None
            self._changed.notify_all()
        with contextlib.suppress(queue.Full):
            self._input.put_nowait(None)
        if line is not None:
            line.close()

    # --- inner

    def _handshake(self) -> HandshakeRequest:
        parameters = {"SessionType": self._plan.session_type.value, "Properties": self._plan.properties}
        return HandshakeRequest(
            agent_version=AGENT_VERSION, actions=[RequestedAction(kind="SessionType", parameters=parameters)]
        )

    def _process_input(self) -> None:
        """Hand input to the plugin, which may have to wait for its program while acknowledgements are processed."""
        try:
            while (message := self._input.get()) is not None and not self.has_ended:
                self._process(message)
        except MessageError as error:
            log.info("session %s: refused a payload: %s", self._session_id, error)
            self.terminate(str(error))

    def _process(self, message: ClientMessage) -> None:
        if message.payload_type == PayloadType.HANDSHAKE_RESPONSE:
            self._shake(HandshakeResponse.decode(message.payload))
        elif self._plugin is not None:
            self._plugin.receive(message.payload_type, message.payload)

    def _shake(self, response: HandshakeResponse) -> None:
        if self._plugin is not None or self.has_ended:
            return
        if response.failed:
            self.finish(f"handshake failed: {response.failed}")
            return
        took_ns = int((time.time() - self._began_s) * 1e9)
        self._send(PayloadType.HANDSHAKE_COMPLETE, HandshakeComplete(took_ns=took_ns).encode())
        try:
            self._plugin = plugin_of(self._plan, machine=self._machine, channel=self, client=response.client_version)
        except Exception as error:  # noqa: BLE001 - the client gets the reason
            log.info("session %s: %s", self._session_id, error)
            self.finish(str(error))
            return
        if self.has_ended:
            self._plugin.stop()

    def _send(self, payload_type: PayloadType, payload: bytes) -> None:
        with self._changed:
            raw = self._stream.send(payload_type, payload, now_s=time.time())
            self._transmit(raw)

    def _transmit(self, *messages: bytes) -> None:
        """Send on the connection, if there is one; what is lost is sent again on the next."""
        if self._line is not None:
            for one in messages:
                self._line.send(one)

    def _resend(self) -> None:
        while not self.has_ended:
            time.sleep(RESEND_EVERY_S)
            with self._changed:
                now_s = time.time()
                late = self._line is not None and self._stream.has_given_up(now_s=now_s)
                raw = self._stream.due(now_s=now_s) if self._line is not None else None
                if raw is not None:
                    self._transmit(raw)
            if late or (self._plugin is None and self._line is not None and now_s - self._began_s > HANDSHAKE_S):
                self.terminate("the client does not acknowledge" if late else "handshake timed out")
