"""
Clients of a port: several at once in one thread, each with one deadline for request and response.

One address has a few connections; when all are in use, the oldest is closed for a new one.
"""

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

DEADLINE_S = 5.0
MOST_CALLERS = 64
MOST_OF_AN_ADDRESS = 4
LONGEST_REQUEST = 8192
_END = b"\r\n\r\n"
_PART = 1 << 16


@dataclass(eq=False)
class _Caller:
    line: socket.socket
    address: str
    until_s: float
    asked: bytes = b""
    answer: "memoryview" = field(default_factory=lambda: memoryview(b""))


class Callers:
    """Clients of a listening socket, made non-blocking; ``answer`` gets the request up to its empty line."""

    def __init__(self, listening: socket.socket, *, answer: "Callable[[bytes], bytes]") -> None:
        self._listening, self._answer = listening, answer
        self._selector = selectors.DefaultSelector()
        self._callers: list[_Caller] = []
        """Oldest first."""
        listening.settimeout(0.0)
        self._selector.register(listening, selectors.EVENT_READ)

    def close(self) -> None:
        for caller in [*self._callers]:
            self._drop(caller)
        self._selector.close()

    def serve(self, timeout_s: float) -> None:
        """Do all that is possible without waiting, within that time."""
        now_s = time.monotonic()
        if self._callers:
            timeout_s = min(timeout_s, max(0.0, self._callers[0].until_s - now_s))
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:
                self._accept()
            elif key.data in self._callers:  # an earlier one of this round may have taken its place
                self._go_on(key.data)
        now_s = time.monotonic()
        for caller in [one for one in self._callers if one.until_s <= now_s]:
            self._drop(caller)

    def _accept(self) -> None:
        try:
            line, (address, *_) = self._listening.accept()
        except OSError:  # it hung up, or this process has no descriptor left
            self._make_room(self._callers[:1])
            time.sleep(0.05)
            return
        own = [one for one in self._callers if one.address == address]
        self._make_room(own[:1] if len(own) >= MOST_OF_AN_ADDRESS else [])
        self._make_room(self._callers[:1] if len(self._callers) >= MOST_CALLERS else [])
        line.settimeout(0.0)
        caller = _Caller(line=line, address=str(address), until_s=time.monotonic() + DEADLINE_S)
        self._callers.append(caller)
        self._selector.register(line, selectors.EVENT_READ, caller)

    def _make_room(self, oldest: "list[_Caller]") -> None:
        for caller in oldest:
            self._drop(caller)

    def _go_on(self, caller: _Caller) -> None:
        try:
            done = self._send(caller) if caller.answer else self._read(caller)
        except BlockingIOError:
            return
        except OSError:
            done = True
        if done:
            self._drop(caller)

    def _read(self, caller: _Caller) -> bool:
        part = caller.line.recv(LONGEST_REQUEST)
        caller.asked += part
        if part and _END not in caller.asked and len(caller.asked) < LONGEST_REQUEST:
            return False
        caller.answer = memoryview(self._answer(caller.asked.partition(_END)[0]))
        self._selector.modify(caller.line, selectors.EVENT_WRITE, caller)
        return self._send(caller)

    @staticmethod
    def _send(caller: _Caller) -> bool:
        caller.answer = caller.answer[caller.line.send(caller.answer[:_PART]) :]
        return not caller.answer

    def _drop(self, caller: _Caller) -> None:
        self._callers.remove(caller)
        with suppress(KeyError, ValueError):
            self._selector.unregister(caller.line)
        with suppress(OSError):  # what it still says must not take back what it was answered
            caller.line.shutdown(socket.SHUT_WR)
        caller.line.close()
