import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping

from holdfast.localcloud.gpus import ANSWERS, addresses, changed
from holdfast.localcloud.nodes import Node, NodeError
from holdfast.localcloud.planting.faults import FaultError
from holdfast.localcloud.planting.lines import WITHOUT_GPUS


def device_of(node: Node, *, gpu: int, required: bool) -> tuple[str, tuple[str, ...]]:
    """Return the address of the GPU with this number, and all. Raise FaultError if there are fewer."""
    file = node.inside(ANSWERS)
    known = addresses(file.read_bytes().decode()) if file.exists() else ()
    if not known and not required and gpu == 0:
        return WITHOUT_GPUS, ()
    if gpu >= len(known):
        has = f"GPUs 0 to {len(known) - 1}" if known else "no GPUs"
        raise FaultError(f"node {node.spec.instance_id} has {has}, got GPU {gpu}")
    return known[gpu], known


@contextlib.contextmanager
def answering(node: Node, *, name: str, lines: Mapping[str, str]) -> Iterator[None]:
    _change(node, name=name, lines=lines)
    try:
        yield
    finally:
        with contextlib.suppress(NodeError, OSError):  # the node has ended, or is about to
            _change(node, name=name, lines={})


def _change(node: Node, *, name: str, lines: Mapping[str, str]) -> None:
    lock = os.open(f"/proc/{node.pid}/root/run/holdfast", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another fault of this node may be planted or undone now
        reported = node.inside(ANSWERS).read_bytes().decode()
        node.write_file(ANSWERS, changed(reported, name=name, lines=lines).encode())
    finally:
        os.close(lock)
