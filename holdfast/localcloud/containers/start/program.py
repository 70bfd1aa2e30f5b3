import os
import socket

from . import container, spec, system
from .errors import RefusedError
from .inside import PreparedMount
from .request import MAX_BYTES, StepRequest, parse


def main() -> None:
    """Answer the request on descriptor 0. Write nothing else, and leave no child."""
    system.die_with_parent()
    with socket.socket(fileno=0) as channel:
        try:
            request = parse(_read(channel))
            image = container.find_image(request)
            prepared = container.open_mounts(request)
            system.unshare(system.CLONE_NEWNS | system.CLONE_NEWPID)
        except Exception as error:  # noqa: BLE001  the entry point of a process
            _refuse(channel, error)
            return
        child = os.fork()
        if child == 0:
            system.die_with_parent()
            try:
                _make(channel, request=request, image=image, prepared=prepared)
            except Exception as error:  # noqa: BLE001
                _refuse(channel, error)
            finally:
                os._exit(0)
        os.waitpid(child, 0)


def _read(channel: socket.socket) -> bytes:
    parts: list[bytes] = []
    while (part := channel.recv(65536)) and sum(map(len, parts)) <= MAX_BYTES:
        parts.append(part)
    return b"".join(parts)


def _make(
    channel: socket.socket, *, request: StepRequest, image: container.ContainerImage, prepared: list[PreparedMount]
) -> None:
    mounts = container.build(request, image=image)
    where = container.furnish(request, image=image, mounts=mounts, prepared=prepared)
    words = ["ok", where, *spec.environment(image.config)]
    body = b"".join(os.fsencode(word) + b"\0" for word in words)
    socket.send_fds(channel, [body[:1]], [mounts])
    channel.sendall(body[1:])


def _refuse(channel: socket.socket, error: Exception) -> None:
    text = str(error) if isinstance(error, RefusedError) else f"{type(error).__name__}: {error}"
    line = " ".join(text.split()) or "no reason given"
    channel.sendall(b"error\0" + line.encode(errors="replace") + b"\0")
