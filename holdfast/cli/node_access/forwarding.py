"""Ports of this machine that lead to ports of a node."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator

from holdfast.cli.terminal import CommandError

MOST_CONNECTIONS = 32


class ForwardedPort:
    """Each connection to the listening socket is a relay of its own; ``relay`` gets its descriptor."""

    def __init__(self, listening: socket.socket, relay: Callable[[int], None]) -> None:
        self._listening = listening
        self._relay = relay
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
        try:
            with connection:
                self._relay(connection.fileno())
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        except CommandError as error:
            self._problems.put(str(error))
        except OSError:
            return  # the caller closed the connection
        finally:
            self._free.release()


@contextlib.contextmanager
def forwarded(local: int, relay: Callable[[int], None]) -> Iterator[ForwardedPort]:
    """Listen on a loopback port; 0 picks one. Raises: CommandError: the port is taken."""
    try:
        listening = socket.create_server(("127.0.0.1", local))
    except OSError as error:
        raise CommandError(f"port {local} of this machine cannot be used: {error.strerror}") from None
    with listening:
        yield ForwardedPort(listening, relay)
