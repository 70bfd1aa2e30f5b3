"""
Several connections to a port over one data channel, as port forwarding of AWS's plugin has them.

Format: smux, version 1 (github.com/xtaci/smux, ``frame.go``): version 1, command 1, length 2, stream 4, little endian,
then data.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from holdfast.localcloud.aws.ssm.channels import Channel
from holdfast.session_manager import Flag, MessageError, PayloadType, flag_of

_FRAME = struct.Struct("<BBHI")
VERSION, SYN, FIN, PSH, NOP = 1, 0, 1, 2, 3
MOST_STREAMS = 64
STEP = 1 << 15


class MultiplexedPort:
    def __init__(self, connect: Callable[[], socket.socket], channel: Channel) -> None:
        self._connect = connect
        self._channel = channel
        self._lock = threading.Lock()
        self._streams: dict[int, socket.socket] = {}
        self._buffer = bytearray()

    def receive(self, payload_type: int, payload: bytes) -> None:
        """Process data of the channel. Raises: MessageError: no frame of smux."""
        if payload_type == PayloadType.FLAG and flag_of(payload) == Flag.TERMINATE_SESSION:
            self.stop()
            self._channel.finish()
        if payload_type != PayloadType.OUTPUT:
            return
        self._buffer += payload
        while len(self._buffer) >= _FRAME.size:
            version, command, length, number = _FRAME.unpack_from(self._buffer)
            if version != VERSION or command > NOP:
                raise MessageError(
                    f"got smux version {version}, command {command}; allowed: version 1, commands 0 to 3"
                )
            if len(self._buffer) < _FRAME.size + length:
                return
            data = bytes(self._buffer[_FRAME.size : _FRAME.size + length])
            del self._buffer[: _FRAME.size + length]
            self._frame(command, number, data)

    def stop(self) -> None:
        with self._lock:
            streams = list(self._streams.values())
        for one in streams:
            _shut(one)

    def _frame(self, command: int, number: int, data: bytes) -> None:
        with self._lock:
            connection = self._streams.get(number)
        if command == SYN and connection is None:
            self._open(number)
        elif command == PSH and connection is not None:
            try:
                connection.sendall(data)
            except OSError:
                _shut(connection)
        elif command == FIN and connection is not None:
            _shut(connection)

    def _open(self, number: int) -> None:
        connection = None
        if len(self._streams) < MOST_STREAMS:
            with contextlib.suppress(OSError):
                connection = self._connect()
        if connection is None:
            self._channel.output(Flag.CONNECT_TO_PORT_ERROR.encode(), PayloadType.FLAG)
            self._channel.output(_FRAME.pack(VERSION, FIN, 0, number))
            return
        with self._lock:
            self._streams[number] = connection
        threading.Thread(target=self._pump, args=(number, connection), name="port", daemon=True).start()

    def _pump(self, number: int, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(STEP):
                if not self._channel.output(_FRAME.pack(VERSION, PSH, len(data), number) + data):
                    break
        with self._lock:
            self._streams.pop(number, None)
        self._channel.output(_FRAME.pack(VERSION, FIN, 0, number))


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
