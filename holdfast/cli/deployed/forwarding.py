"""Ports of this machine that lead to ports of a node."""

import contextlib
import queue
import socket
import threading
from collections.abc import Iterator

from holdfast.cli.deployed.nodes import relay
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import CommandError

MOST_CONNECTIONS = 32


class ForwardedPort:
    """Each connection to the listening socket is a relay of its own."""

    def __init__(self, context: Context, listening: socket.socket, *, node: str, port: int) -> None:
        self._context = context
        self._listening = listening
        self._node = node
        self._to = port
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        self._problems: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._accept, name="forward", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def problems(self) -> Iterator[str]:
        """Yield why connections failed, without an end."""
        while True:
            yield self._problems.get()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._free.acquire()
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), name="forward", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        number = connection.fileno()
        try:
            with connection:
                relay(self._context, node=self._node, port=self._to, source=number, sink=number)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        except CommandError as error:
            self._problems.put(str(error))
        except OSError:
            return  # the caller closed the connection
        finally:
            self._free.release()


@contextlib.contextmanager
def forward_port(context: Context, *, node: str, local: int, port: int) -> Iterator[ForwardedPort]:
    """Listen on a loopback port; 0 picks one. Raises: CommandError: the port is taken."""
    try:
        listening = socket.create_server(("127.0.0.1", local))
    except OSError as error:
        raise CommandError(f"port {local} of this machine cannot be used: {error.strerror}") from None
    with listening:
        yield ForwardedPort(context, listening, node=node, port=port)
