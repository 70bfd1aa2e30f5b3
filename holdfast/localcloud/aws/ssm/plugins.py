"""
Plugins of the agent: shell, interactive command, command, and port.

Sources: ``agent/session/shell/shell.go`` and ``shell_unix.go``, ``agent/session/plugins/port``. Sessions are root's on
HyperPod (SageMaker guide, "Accessing your cluster nodes").
"""

import contextlib
import fcntl
import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import termios
import threading
from typing import Protocol

from holdfast.localcloud.aws.ssm.channels import Channel
from holdfast.localcloud.aws.ssm.machine import Machine
from holdfast.localcloud.aws.ssm.multiplexing import MultiplexedPort
from holdfast.session_manager import (
    Flag,
    PayloadType,
    SessionPlan,
    SessionType,
    TerminalSize,
    flag_of,
)

STEP = 1 << 16
MOST_OUTPUT = 256 << 20
_SIGNALS = {0x03: signal.SIGINT, 0x1C: signal.SIGQUIT}
"""Control characters that a command gets as signals (``ByteControlSignalsLinux``)."""
_ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": "/root"}
MULTIPLEXES_FROM = (1, 1, 70)
"""Client version (``muxSupportedClientVersion``)."""


class Plugin(Protocol):
    def receive(self, payload_type: int, payload: bytes) -> None: ...

    def stop(self) -> None: ...


def plugin_of(plan: SessionPlan, *, machine: Machine, channel: Channel, client: str) -> Plugin:
    """Start what the session runs. Raises: OSError, ValueError, NodeError: it cannot be started."""
    if plan.session_type == SessionType.NON_INTERACTIVE_COMMANDS:
        return Command(machine, shlex.split(plan.command), channel)
    if plan.session_type == SessionType.PORT:
        if plan.forwards and _version(client) >= MULTIPLEXES_FROM:
            return MultiplexedPort(lambda: machine.connect(plan.port), channel)
        return Port(machine.connect(plan.port), channel)
    argv = ["sh", "-c", plan.command] if plan.session_type == SessionType.INTERACTIVE_COMMANDS else ["sh"]
    return Terminal(machine, argv, channel)


class Terminal:
    """A program on a terminal of the node; it gets SIGHUP where the session ends first."""

    def __init__(self, machine: Machine, argv: list[str], channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        self._master, slave = machine.terminal()
        try:
            self._process = machine.popen(
                ["setsid", "--ctty", "--wait", *argv], env=_ENVIRONMENT, stdin=slave, stdout=slave, stderr=slave
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(slave)
        threading.Thread(target=self._pump, name="terminal", daemon=True).start()

    def receive(self, payload_type: int, payload: bytes) -> None:
        with contextlib.suppress(OSError):
            if payload_type == PayloadType.SIZE:
                size = TerminalSize.decode(payload)
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
            elif payload_type == PayloadType.OUTPUT:
                _write(self._master, payload)

    def stop(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.write(self._wake, b"!")

    def _pump(self) -> None:
        with contextlib.suppress(OSError):  # EIO: no program has the terminal open any more
            while self._woken not in select.select([self._master, self._woken], [], [])[0]:
                if not self._channel.output(os.read(self._master, STEP)):
                    break
        self._close()
        self._process.wait()
        self._channel.finish()

    def _close(self) -> None:
        with self._lock:
            for one in (self._master, self._woken, self._wake):
                os.close(one)
            self._master = self._woken = self._wake = -1


class Command:
    """
    A command without input, whose output is sent after its end.

    The agent writes both streams to one file, and reads the file once the command has ended.
    """

    def __init__(self, machine: Machine, argv: list[str], channel: Channel) -> None:
        self._channel = channel
        if not argv:
            raise ValueError("Failed to parse commands input: no command")
        self._process = machine.popen(argv, env=_ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        threading.Thread(target=self._pump, name="command", daemon=True).start()

    def receive(self, payload_type: int, payload: bytes) -> None:
        number = next((_SIGNALS[one] for one in payload if one in _SIGNALS), None)
        if payload_type == PayloadType.OUTPUT and number is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def stop(self) -> None:
        _end(self._process)

    def _pump(self) -> None:
        assert self._process.stdout is not None
        data = bytearray()
        with self._process.stdout as source:
            while len(data) < MOST_OUTPUT and (part := os.read(source.fileno(), STEP)):
                data += part
        self._process.wait()
        self._channel.output(bytes(data))
        self._channel.finish()


class Port:
    """One connection to a port; it and the session end together."""

    def __init__(self, connection: socket.socket, channel: Channel) -> None:
        self._connection = connection
        self._channel = channel
        threading.Thread(target=self._pump, name="port", daemon=True).start()

    def receive(self, payload_type: int, payload: bytes) -> None:
        if payload_type == PayloadType.FLAG:
            if flag_of(payload) in (Flag.DISCONNECT_TO_PORT, Flag.TERMINATE_SESSION):
                self.stop()
        elif payload_type == PayloadType.OUTPUT:
            try:
                self._connection.sendall(payload)
            except OSError:
                self.stop()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _pump(self) -> None:
        with self._connection, contextlib.suppress(OSError):
            while (data := self._connection.recv(STEP)) and self._channel.output(data):
                pass
        self._channel.finish()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
