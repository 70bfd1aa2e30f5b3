"""
The GPU of this process: one that no other process of the run on this node has, and that works.

Locks of fcntl(2) end with their process and are not inherited by its children, so a GPU is free as soon as its rank is
gone. They are on bytes of one file: a byte per GPU, by its UUID.
"""

import fcntl
import hashlib
import logging
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.beginning import unsupported_reported

PROBE_S = 30.0
"""Longest first use of a GPU. A context takes seconds."""
BROKEN = 76
"""Exit code of a process whose GPU does not work (EX_PROTOCOL)."""
_LOG = logging.getLogger(__name__)
_own: list[torch.device] = []
_descriptors: dict[Path, int] = {}


@dataclass(frozen=True)
class Claims:
    """GPUs of a run on this node, in a file of this user."""

    path: Path

    def take(self, uuids: Sequence[str]) -> int | None:
        """Return the place of the first free one that is not marked; it is this process's until it ends."""
        descriptor = self._open()
        for index, uuid in enumerate(uuids):
            if os.pread(descriptor, 1, _place(uuid)) not in (b"", b"\0"):
                continue
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(uuid))
            except OSError:
                continue
            return index
        return None

    def mark(self, uuid: str) -> None:
        """Record that a GPU does not work: no process takes it any more."""
        os.pwrite(self._open(), b"x", _place(uuid))

    def marked(self, uuids: Sequence[str]) -> int:
        descriptor = self._open()
        return sum(os.pread(descriptor, 1, _place(uuid)) == b"x" for uuid in uuids)

    def _open(self) -> int:
        """Never closed: to close any descriptor of the file would end all locks of this process."""
        if self.path not in _descriptors:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            found = os.fstat(descriptor)
            if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
                raise UnsupportedError(f"got {self.path} of another user; allowed: a file of this one; remove it")
            _descriptors[self.path] = descriptor
        return _descriptors[self.path]


def device() -> torch.device:
    """
    Return the GPU of this process, as the current one; the CPU where there is none.

    It is the first that no other process of the run on this node has, and that does a small computation. LOCAL_RANK is
    its number from then on, as torch and Lightning read it. The same at each call.

    Raises:
        UnsupportedError: more processes than GPUs; the job ends.
    """
    if not _own:
        run = os.environ.get("TORCHELASTIC_RUN_ID", "")
        _own.append(_chosen(run) if torch.cuda.is_available() else torch.device("cpu"))
    return _own[0]


def _chosen(run: str) -> torch.device:
    count = torch.cuda.device_count()
    uuids = [str(torch.cuda.get_device_properties(index).uuid) for index in range(count)]
    name = hashlib.blake2b(run.encode(), digest_size=8).hexdigest()
    claims = Claims(Path(tempfile.gettempdir()) / f"holdfast-gpus-{os.getuid()}-{name}")
    index = claims.take(uuids)
    if index is None and claims.marked(uuids):
        _end(f"no GPU of this node is left that works: {claims.marked(uuids)} of {count} failed their probe")
    if index is None:
        with unsupported_reported():
            raise UnsupportedError(
                f"got more processes on this node than its {count} GPUs; allowed: one per GPU, spares included; "
                "start fewer with --nproc-per-node, and use --spare-nodes in place of --spares"
            )
    torch.cuda.set_device(index)
    if problem := probe(lambda: _compute(index)):
        claims.mark(uuids[index])
        _end(f"GPU {index} ({uuids[index]}) does not work: {problem}")
    os.environ["LOCAL_RANK"] = str(index)
    return torch.device("cuda", index)


def probe(compute: Callable[[], None], *, limit_s: float = PROBE_S) -> str:
    """Return why a computation fails, or that it does not end; empty if it ends. A call into the driver may hang."""
    found: list[str] = []

    def work() -> None:
        try:
            compute()
        except Exception as error:  # noqa: BLE001 - whatever a broken device raises
            found.append(f"{type(error).__name__}: {error}".splitlines()[0])

    thread = threading.Thread(target=work, name="holdfast-probe", daemon=True)
    thread.start()
    thread.join(limit_s)
    return f"no answer within {limit_s:g} s" if thread.is_alive() else "".join(found)


def _compute(index: int) -> None:
    ones = torch.ones(1 << 20, device=torch.device("cuda", index))
    if ones.sum().item() != len(ones):
        raise RuntimeError("a sum is wrong")


def _end(reason: str) -> NoReturn:
    """At once: a process with a broken context can do no more, and another takes its place."""
    _LOG.error("%s; this process ends", reason)
    logging.shutdown()
    os._exit(BROKEN)


def _place(uuid: str) -> int:
    return int.from_bytes(hashlib.blake2b(uuid.encode(), digest_size=5).digest(), "big")
