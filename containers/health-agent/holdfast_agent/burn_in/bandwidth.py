import hashlib
import os
import socket
import time

from holdfast_agent.burn_in.trial import Trial

CHUNK = 1 << 20


def loopback(*, seconds: float) -> Trial:
    """Send TCP over the loopback interface between two processes and compare."""
    data = hashlib.sha256(b"loopback").digest() * (CHUNK // 32)
    try:
        listening = socket.create_server(("127.0.0.1", 0))
    except OSError as problem:
        return Trial("bandwidth", skipped=f"no loopback interface: {problem.strerror}")
    with listening:
        pid = os.fork()
        if pid == 0:
            _send(listening.getsockname()[1], data, seconds)
        listening.settimeout(seconds + 30.0)
        try:
            incoming, _ = listening.accept()
            with incoming:
                incoming.settimeout(seconds + 30.0)
                moved, wrong, cpu_s = _received(incoming, data)
        except OSError as problem:
            return Trial("bandwidth", problems=(f"loopback transfer failed: {problem}",))
        finally:
            os.waitpid(pid, 0)
    problems = (f"{wrong} of {moved // CHUNK} blocks arrived corrupted",) if wrong else ()
    rate = moved / max(cpu_s, 1e-6) / (1 << 30)
    return Trial("bandwidth", problems, {"loopback_gib_per_cpu_s": round(rate, 3)})


def _received(incoming: socket.socket, data: bytes) -> "tuple[int, int, float]":
    room, moved, wrong = bytearray(CHUNK), 0, 0
    began_s = time.process_time()
    while True:
        filled = 0
        while filled < CHUNK:
            got = incoming.recv_into(memoryview(room)[filled:])
            if not got:
                return moved, wrong, time.process_time() - began_s
            filled += got
        moved += CHUNK
        wrong += room != data


def _send(port: int, data: bytes, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30.0) as outgoing:
            while time.monotonic() < until_s:
                outgoing.sendall(data)
    finally:
        os._exit(0)
