"""
Faults of the kind that nothing answers, each held by a process of its own until its input ends.

    python standing_still.py freeze MOUNT     # opens on this mount wait: fanotify permission events without an answer
    python standing_still.py sleep FOLDER     # writes in this folder sleep, unkillably: a file system that is frozen
    python standing_still.py hold FILE        # opens of this file wait, unkillably: a FUSE file that answers no OPEN

It prints "held" once the fault is there. A program of its own, because a descriptor that holds would be inherited by
what is stuck, which would then hold itself.
"""

import ctypes
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_HEADER = struct.Struct("<IIQQIIIHH")
_INIT, _GETATTR = 26, 3


@contextmanager
def standing_still(kind: str, path: Path) -> Iterator[None]:
    """The fault holds inside of the block."""
    command = [sys.executable, __file__, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"held\n", f"the fault '{kind}' could not be made at {path}"
            yield
        finally:
            process.stdin.close()
            process.wait()


def _freeze(path: str) -> None:
    content, add, mount = 0x4, 0x1, 0x10
    asked = 0x10000 | 0x20000 | 0x40000000  # FAN_OPEN_PERM, FAN_ACCESS_PERM, FAN_ONDIR
    fd = _libc.fanotify_init(ctypes.c_uint(content | 0x1), ctypes.c_uint(os.O_RDONLY))
    if fd < 0 or _libc.fanotify_mark(
        fd, ctypes.c_uint(add | mount), ctypes.c_uint64(asked), ctypes.c_int(-100), os.fsencode(path)
    ):
        raise OSError(ctypes.get_errno(), "fanotify")
    print("held", flush=True)
    sys.stdin.read()


def _sleep(path: str) -> None:
    image = Path(f"{path}.img")
    image.write_bytes(bytes(16 << 20))
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, path], check=True)
    try:
        subprocess.run(["fsfreeze", "--freeze", path], check=True)
        print("held", flush=True)
        sys.stdin.read()
        subprocess.run(["fsfreeze", "--unfreeze", path], check=True)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def _hold(path: str) -> None:
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fd},rootmode=100666,user_id=0,group_id=0,allow_other".encode()
    if _libc.mount(b"held", os.fsencode(path), b"fuse.held", ctypes.c_ulong(2), options):
        raise OSError(ctypes.get_errno(), "mount")
    threading.Thread(target=_answer, args=(fd,), daemon=True).start()
    print("held", flush=True)
    sys.stdin.read()
    _libc.umount2(os.fsencode(path), 2)


def _answer(fd: int) -> None:
    """Everything but an OPEN."""
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError:
            return
        _, kind, unique, *_ = _HEADER.unpack_from(request)
        if kind == _INIT:
            ahead = struct.unpack_from("<IIII", request, _HEADER.size)[2]
            body = struct.pack("<IIIIHHIIHH", 7, 31, ahead, 0, 16, 12, 1 << 16, 1, 0, 0) + bytes(32)
        elif kind == _GETATTR:
            body = struct.pack("<QII", 1, 0, 0) + struct.pack(
                "<QQQQQQIIIIIIIIII", 1, *[0] * 8, 0o100666, 1, 0, 0, 0, 4096, 0
            )
        else:
            continue
        os.write(fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


if __name__ == "__main__":
    {"freeze": _freeze, "sleep": _sleep, "hold": _hold}[sys.argv[1]](sys.argv[2])
