"""
Sockets of the launchers of this node: where ``holdfast-run status`` asks when none is named.

A socket counts by whose it is: it lies in a folder of its user alone, and the kernel says that this user listens on it.
"""

import re
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast_runtime.launcher.settings import check_folder, socket_folders

_NAME = re.compile(r"(?P<run>.+)-(?P<node>\d+)\.sock")
_CREDENTIALS = struct.Struct("iII")
LONGEST_ANSWER = 1 << 20
"""Of a launcher with as many processes as a node has cores it is a hundredth of that."""


@dataclass(frozen=True, kw_only=True)
class FoundSocket:
    """One socket."""

    path: Path
    run: str
    node: int


def folders(environment: Mapping[str, str], *, uid: int) -> tuple[Path, ...]:
    found = []
    for folder in socket_folders(environment, uid=uid):
        with suppress(OSError):
            check_folder(folder, uid=uid)
            found.append(folder)
    return tuple(found)


def find_sockets(
    places: Iterable[Path], *, run: str | None = None, node: int | None = None, job: str = ""
) -> list[FoundSocket]:
    """
    Sockets by run and node.

    Args:
        job: Of Slurm, whose own come first and, where there are some, alone.
    """
    found = [
        FoundSocket(path=path, run=match["run"], node=int(match["node"]))
        for place in places
        for path in sorted(place.iterdir())
        if (match := _NAME.fullmatch(path.name))
    ]
    found = [one for one in found if run in (None, one.run) and node in (None, one.node)]
    return [one for one in found if job and one.run == job] or found


def ask_socket(path: Path, *, say: str, uids: Iterable[int] | None, within_s: float) -> bytes:
    """
    Return what the launcher at a socket answers.

    Args:
        uids: Users whose launchers are heard. None: all, as root may.

    Raises:
        TimeoutError: it has not answered in time.
        OSError: nothing answers there, or a process of another user does.
        ValueError: the answer is longer than LONGEST_ANSWER.
    """
    until_s = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(within_s)
        line.connect(str(path))
        if uids is not None and (uid := peer_uid(line)) not in set(uids):
            raise PermissionError(f"a process of uid {uid} listens there")
        with suppress(BrokenPipeError):  # what it has answered can still be read
            line.sendall(f"{say}\n".encode())
        answer = bytearray()
        while part := _part(line, until_s=until_s):
            answer += part
            if len(answer) > LONGEST_ANSWER:
                raise ValueError(f"an answer of more than {LONGEST_ANSWER} bytes")
    return bytes(answer)


def peer_uid(line: socket.socket) -> int:
    _, uid, _ = _CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def _part(line: socket.socket, *, until_s: float) -> bytes:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    line.settimeout(left_s)
    return line.recv(1 << 16)


def default_job(environment: Mapping[str, str]) -> str:
    return environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID") or ""


def searched(environment: Mapping[str, str], *, uid: int) -> str:
    return " or ".join(map(str, socket_folders(environment, uid=uid)))
