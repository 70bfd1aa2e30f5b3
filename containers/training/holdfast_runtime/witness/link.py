"""A launcher's link to the witness: made again whenever it is lost, and never waited for."""

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast_runtime import membership
from holdfast_runtime.control import Deadlines, MessageError, end_tasks
from holdfast_runtime.witness.finding import Address
from holdfast_runtime.witness.wire import (
    BEAT,
    HANDSHAKE,
    WITNESS,
    Beat,
    Challenge,
    Goodbye,
    Handshake,
    Join,
    Open,
    Refused,
    SeatGranted,
    WitnessMessage,
    key_of,
    proof,
)

LINE_BYTES = 1 << 26
RETRY_S = 0.2
SLOWEST_RETRY_S = 5.0
OPEN = -1
UNREACHABLE = "unreachable"


class _RefusedError(Exception):
    """The witness does not admit this launcher."""


@dataclass(frozen=True, kw_only=True)
class WitnessHandlers:
    """Callbacks; none may block."""

    address: Callable[[], Address | None]
    claim: Callable[[], int | None]
    """Identity in the view; OPEN to register the run; None to wait until another launcher has."""
    found: Callable[[int], None]
    lost: Callable[[str], None]
    left: Callable[[], None]
    """This end goes over to another memory, which the view names."""
    message: Callable[[membership.Message], None]
    refused: Callable[[str], None]
    """Called once for each reason."""


class WitnessLink:
    """The link of one launcher."""

    def __init__(self, *, run_id: str, seat: int, token: str, deadlines: Deadlines, handlers: WitnessHandlers) -> None:
        self._run_id = run_id
        self._seat = seat
        self._key = key_of(token=token, run_id=run_id)
        self._deadlines = deadlines
        self._handlers = handlers
        self._writer: asyncio.StreamWriter | None = None
        self._heard_s = 0.0
        self._silent = self._closing = self._leaving = False
        self._reported = ""
        self._forgotten: set[int] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.identity = -1
        """Of the memory that this launcher speaks with; -1 without a link."""
        self.address: Address | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def has_forgotten(self, identity: int) -> bool:
        return identity in self._forgotten

    def claim_changed(self) -> None:
        self._changed.set()
        if self._writer is not None and self._handlers.claim() not in (self.identity, OPEN, None):
            self._leaving = True
            self._writer.transport.abort()

    def send(self, message: WitnessMessage) -> None:
        if self._writer is not None:
            self._writer.write(WITNESS.encode(message) + b"\n")

    async def close(self) -> None:
        if self._task is None:
            return
        self._closing = True
        self.send(Goodbye())
        await end_tasks([self._task])

    async def _keep(self) -> None:
        pause_s = RETRY_S
        while True:
            self._changed.clear()
            address, claim = self._handlers.address(), self._handlers.claim()
            if address is not None and claim is not None:
                try:
                    await self._call(address, claim)
                    pause_s = RETRY_S
                except _RefusedError as error:
                    self._tell(str(error), f"{address[0]} port {address[1]} refuses: {error}")
                    pause_s = SLOWEST_RETRY_S
                except (OSError, asyncio.TimeoutError, MessageError, ValueError, EOFError) as error:
                    why = str(error) or type(error).__name__
                    self._tell(UNREACHABLE, f"{address[0]} port {address[1]} does not answer: {why}")
                    pause_s = min(SLOWEST_RETRY_S, pause_s * 1.5)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s)

    def _tell(self, what: str, text: str) -> None:
        if what != self._reported:
            self._reported = what
            self._handlers.refused(text)

    async def _call(self, address: Address, claim: int) -> None:
        """From the connection to its end. Raises what keeps it from being made."""
        within_s = self._deadlines.heartbeat
        opening = asyncio.open_connection(*address, limit=LINE_BYTES)
        reader, writer = await asyncio.wait_for(opening, within_s)
        try:
            seated = await asyncio.wait_for(self._admission(reader, writer, claim), within_s)
            if seated is None:
                return
            self._reported = ""
            self.identity, self.address, self._writer = seated, address, writer
            await self._serve(reader, writer)
        finally:
            self._writer = None
            writer.close()

    async def _admission(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, claim: int) -> int | None:
        challenge = await self._handshake(reader)
        if isinstance(challenge, Refused):
            raise _RefusedError(challenge.reason)
        if not isinstance(challenge, Challenge):
            raise MessageError("it does not begin with a challenge")
        nonce = secrets.token_hex(16)
        asked: Handshake = Open(self._run_id, self._seat, self._key, nonce)
        if claim != OPEN:
            asked = Join(claim, nonce, proof("join", self._key, identity=claim, nonce=challenge.nonce))
        writer.write(HANDSHAKE.encode(asked) + b"\n")
        answer = await self._handshake(reader)
        if isinstance(answer, Refused) and answer.unknown:
            self._forgotten.add(claim)
            return None
        if isinstance(answer, Refused):
            raise _RefusedError(answer.reason)
        if not isinstance(answer, SeatGranted):
            raise MessageError("it does not answer with a seat")
        mine = proof("seated", self._key, identity=answer.identity, nonce=nonce)
        if answer.proof != mine or claim not in (answer.identity, OPEN):
            raise MessageError("it does not know this run's key")
        return answer.identity

    async def _handshake(self, reader: asyncio.StreamReader) -> Handshake:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it closed the connection")
        return HANDSHAKE.decode(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._heard_s, self._silent, self._leaving = time.monotonic(), False, False
        beating = asyncio.get_running_loop().create_task(self._beat(writer))
        why = "its connection was closed"
        try:
            self._handlers.found(self.identity)
            while (line := await reader.readline()).endswith(b"\n"):
                self._heard_s = time.monotonic()
                message = WITNESS.decode(line)
                if not isinstance(message, Beat | Goodbye):
                    self._handlers.message(message)
        except OSError:
            pass
        except (MessageError, ValueError) as error:
            why = f"protocol error: {error}"
        finally:
            beating.cancel()
            self.identity, self._writer = -1, None
            if self._leaving and not self._closing:
                self._handlers.left()
            elif not self._closing:
                self._reported = UNREACHABLE
                self._handlers.lost(f"it was silent for {self._deadlines.heartbeat:g} s" if self._silent else why)

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        suspected = False
        while True:
            writer.write(BEAT)
            left_s = self._heard_s + self._deadlines.heartbeat - time.monotonic()
            if left_s <= 0 and suspected:
                self._silent = True
                writer.transport.abort()
                return
            suspected = left_s <= 0
            # Where this launcher itself was stopped, what came meanwhile is read before anybody is judged.
            await asyncio.sleep(0.02 if suspected else self._deadlines.heartbeat / 3)
