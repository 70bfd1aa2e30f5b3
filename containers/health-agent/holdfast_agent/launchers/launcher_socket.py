"""
The agent's end of the node socket: no client can block it, fill its memory, or report for another.

It never waits. Its descriptor is readable when ``poll`` has work.
"""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast_agent.launchers.connection import Connection
from holdfast_agent.launchers.job_report import JobReport
from holdfast_agent.launchers.peer import PeerMismatchError, peer_of
from holdfast_common import node_socket

MOST_CONNECTIONS = 128
MOST_OF_A_USER = 16
"""One user cannot keep others out."""
FIRST_WORD_S = 5.0
"""A launcher sends its first report at once."""
MOST_ANSWERS = 256


class LauncherSocket:
    """All launchers of this node. A stale socket is removed; raises OSError, also if another agent listens."""

    def __init__(
        self,
        *,
        path: Path,
        clock: "Callable[[], float]" = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._path = path
        self._clock = clock
        self._connections: dict[int, Connection] = {}
        self._numbers = 0
        self._answers: list[tuple[JobReport, node_socket.Answer]] = []
        self.refused: dict[str, int] = {}
        """Refused and closed connections, by reason."""
        self.last_refusal = ""
        """For people."""
        self._listener = _listen(path)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        return self._epoll.fileno()

    def poll(self) -> None:
        """Receive and send; call it also about once a second."""
        for descriptor, events in self._epoll.poll(0):
            if descriptor == self._listener.fileno():
                self._accept()
            elif descriptor in self._connections:
                self._serve(self._connections[descriptor], events)
        now_s = self._clock()
        for connection in [*self._connections.values()]:
            if connection.job is None and now_s - connection.since_s > FIRST_WORD_S:
                self._drop(connection, "silent", f"process {connection.peer.pid} connected but sent nothing")

    def jobs(self) -> "tuple[JobReport, ...]":
        return tuple(item.job for item in self._connections.values() if item.job is not None)

    def tell(self, job: JobReport, command: node_socket.Command) -> bool:
        """Send a command; False where the launcher is gone, or its queue is full."""
        for connection in [*self._connections.values()]:
            if connection.number == job.connection:
                if connection.queue(command):
                    self._send(connection)
                    return connection.descriptor in self._connections
                self._drop(connection, "deaf", f"process {connection.peer.pid} does not accept commands")
        return False

    def answers(self) -> "tuple[tuple[JobReport, node_socket.Answer], ...]":
        """Answers to commands since the last call, each with its launcher."""
        taken, self._answers = tuple(self._answers), []
        return taken

    def close(self) -> None:
        for connection in [*self._connections.values()]:
            self._forget(connection)
        self._epoll.close()
        self._listener.close()
        with suppress(OSError):
            self._path.unlink()

    def _accept(self) -> None:
        for _ in range(MOST_OF_A_USER):
            try:
                line, _ = self._listener.accept()
            except OSError:  # nobody is left, or it has hung up
                return
            line.settimeout(0)
            try:
                peer = peer_of(line)
            except PeerMismatchError as error:
                self._refuse("unseen", str(error))
                line.close()
                continue
            of_user = sum(item.peer.uid == peer.uid for item in self._connections.values())
            if len(self._connections) >= MOST_CONNECTIONS or of_user >= MOST_OF_A_USER:
                self._refuse("too many", f"user {peer.uid} has {of_user} connections of {len(self._connections)}")
                line.close()
                continue
            self._numbers += 1
            connection = Connection(line, peer=peer, number=self._numbers, since_s=self._clock())
            self._connections[connection.descriptor] = connection
            self._epoll.register(connection.descriptor, select.EPOLLIN)

    def _serve(self, connection: Connection, events: int) -> None:
        if events & select.EPOLLOUT:
            self._send(connection)
        if not events & ~select.EPOLLOUT or connection.descriptor not in self._connections:
            return
        try:
            for message in connection.receive(now_s=self._clock()):
                if isinstance(message, node_socket.LauncherReport):
                    connection.attest(message, now_s=self._clock())
                elif isinstance(message, node_socket.Answer) and connection.job is not None:
                    connection.answered(message)
                    self._answers = [*self._answers[1 - MOST_ANSWERS :], (connection.job, message)]
                else:
                    self._drop(connection, "other language", f"process {connection.peer.pid} did not report first")
                    return
        except PeerMismatchError as error:
            self._drop(connection, "lie", str(error))
        except node_socket.NodeSocketError as error:
            self._drop(connection, "other language", f"process {connection.peer.pid}: {error}")
        except OSError:
            self._forget(connection)

    def _send(self, connection: Connection) -> None:
        try:
            left = connection.send()
        except OSError:
            self._forget(connection)
            return
        self._epoll.modify(connection.descriptor, select.EPOLLIN | (select.EPOLLOUT if left else 0))

    def _drop(self, connection: Connection, why: str, text: str) -> None:
        self._refuse(why, text)
        self._forget(connection)

    def _refuse(self, why: str, text: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
        self.last_refusal = text

    def _forget(self, connection: Connection) -> None:
        if self._connections.pop(connection.descriptor, None) is not None:
            with suppress(OSError):
                self._epoll.unregister(connection.descriptor)
            connection.close()


def _listen(path: Path) -> socket.socket:
    """Listen at a path that only the folder's owner can replace; all users may connect."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        except BlockingIOError:
            raise OSError(f"another agent listens at {path}; allowed: one agent per node; stop the other one") from None
        else:
            raise OSError(f"another agent listens at {path}; allowed: one agent per node; stop the other one")
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.settimeout(0)
        listener.bind(str(path))
        path.chmod(0o666)  # every user has jobs; who it is says the kernel
        listener.listen(MOST_CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener
