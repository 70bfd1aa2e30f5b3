"""
Server process of a home's kernel logs, at the other end of each node's /dev/kmsg.

    python -I -S -c "import sys; sys.path.insert(0, FOLDER); from program.server import main; main()" --socket PATH

Requests on a socket (SOCK_SEQPACKET, for root): ``attach`` with a descriptor of /dev/fuse, ``write`` with records,
``ask`` for the nodes. A log ends with its mount, and so with the node.
"""

from __future__ import annotations

import _socket as socket
import contextlib
import os
import select
import signal
import sys
import time

from . import fuse
from .device import Device

_NOTICE = 5
_MESSAGE = 1 << 18
_REQUESTS_AT_ONCE = 64
"""Of one node, before others have their turn."""


def _micros() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _banner() -> bytes:
    with open("/proc/version", "rb") as file:  # noqa: PTH123
        return file.read().strip()


class Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._poller = select.epoll()
        self._poller.register(listener.fileno(), select.EPOLLIN)
        self._devices: dict[int, tuple[str, Device]] = {}
        """Descriptor of /dev/fuse -> whose log it is."""
        self._clients: dict[int, socket.socket] = {}

    def serve(self) -> None:
        while True:
            for descriptor, _ in self._poller.poll():
                if descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._clients:
                    self._converse(descriptor)
                elif descriptor in self._devices:
                    self._answer_kernel(descriptor)

    # --- the kernel

    def _answer_kernel(self, descriptor: int) -> None:
        _, device = self._devices[descriptor]
        for _ in range(_REQUESTS_AT_ONCE):
            try:
                request = os.read(descriptor, fuse.READ_BUFFER)
            except BlockingIOError:
                return
            except (InterruptedError, FileNotFoundError):  # ENOENT: whoever asked has gone meanwhile
                continue
            except OSError:  # ENODEV: the node is gone, and its mount with it
                self._drop(descriptor)
                return
            try:
                answers = device.handle(request)
            except (KeyError, ValueError, IndexError) as error:  # one wrong request must not silence other nodes
                print(f"rejected a request of {len(request)} bytes: {error!r}", file=sys.stderr, flush=True)
                continue
            self._send(descriptor, answers)

    def _send(self, descriptor: int, answers: list[bytes]) -> None:
        for answer in answers:
            with contextlib.suppress(OSError):  # whoever waited has gone meanwhile
                os.write(descriptor, answer)

    def _drop(self, descriptor: int) -> None:
        self._poller.unregister(descriptor)
        os.close(descriptor)
        del self._devices[descriptor]

    # --- clients

    def _accept(self) -> None:
        descriptor, _ = self._listener._accept()  # type: ignore[attr-defined] # what the module socket calls
        client = socket.socket(fileno=descriptor)
        self._clients[descriptor] = client
        self._poller.register(descriptor, select.EPOLLIN)

    def _converse(self, descriptor: int) -> None:
        client = self._clients[descriptor]
        try:
            message, ancillary, _, _ = client.recvmsg(_MESSAGE, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            if message:
                client.send(self._answer(message, _descriptors(ancillary)))
                return
        except OSError:
            pass
        self._poller.unregister(descriptor)
        del self._clients[descriptor]
        client.close()

    def _answer(self, message: bytes, handed: list[int]) -> bytes:
        verb, *words = message.split(b"\0")
        if verb == b"attach" and len(words) == 1 and len(handed) == 1:
            return self._attach(words[0].decode(), handed[0])
        for descriptor in handed:
            os.close(descriptor)
        if verb == b"write" and len(words) >= 2 and words[1].isdigit():
            return self._write(words[0].decode(), priority=int(words[1]), texts=words[2:])
        if verb == b"ask":
            return b"\0".join([b"ok", *sorted(name.encode() for name, _ in self._devices.values())])
        return b"no such request"

    def _attach(self, name: str, descriptor: int) -> bytes:
        os.set_blocking(descriptor, False)
        device = Device(micros=_micros)
        device.ring.add(
            priority=_NOTICE, micros=0, text=_banner()
        )  # a kernel's log is never empty, and dmesg relies on it
        self._devices[descriptor] = (name, device)
        self._poller.register(descriptor, select.EPOLLIN)
        return b"ok"

    def _write(self, name: str, *, priority: int, texts: list[bytes]) -> bytes:
        # The newest: a node that was started again under its name may have a predecessor whose mount is still held.
        mounted = [(fd, device) for fd, (owner, device) in self._devices.items() if owner == name]
        if not mounted:
            return b"no such node"
        descriptor, device = mounted[-1]
        for text in texts:
            self._send(descriptor, device.add(priority=priority, text=text))
        return b"ok"


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    rights = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)]
    return [int.from_bytes(data[i : i + 4], sys.byteorder) for data in rights for i in range(0, len(data) - 3, 4)]


def main() -> None:
    """Listen, daemonize, and serve until killed. The caller sees exit code 0 when it may connect."""
    path = sys.argv[sys.argv.index("--socket") + 1]
    folder, _, name = path.rpartition("/")
    os.umask(0o077)
    os.chdir(folder)  # the path of a socket is limited to 107 characters
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)  # noqa: PTH108
    listener.bind(name)
    os.chdir("/")
    read_end, write_end = os.pipe()
    if os.fork():
        os.close(write_end)
        os._exit(0 if os.read(read_end, 1) else 1)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    listener.listen(128)  # by the child: the socket then tells who serves it
    os.write(write_end, b"1")
    os.close(write_end)
    os.close(read_end)
    Server(listener).serve()
