"""
A hung driver: a FUSE file opened by every NVML call, whose open is never answered.

A process that waits for it cannot be killed. Closing the descriptor fails all waits (ENOTCONN), at the fault's end or
before the node ends: PID 1 waits for its processes.
"""

import contextlib
import os
from collections.abc import Iterator

from holdfast.localcloud.kernel_log.program import fuse
from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import boot
from holdfast.localcloud.planting.effects.gpus import answering
from holdfast.localcloud.planting.effects.holding import FaultHold
from holdfast.localcloud.planting.effects.inside import in_mounts_of

_DEVICE = "/run/holdfast/driver"


@contextlib.contextmanager
def hung_driver(node: Node, *, name: str, holding: FaultHold) -> Iterator[str]:
    """Hang calls into NVML; yield the file."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        in_mounts_of(node, lambda: _mount(descriptor))
        holding.serve(descriptor, lambda: _serve(descriptor))
        with answering(node, name=name, lines={"device": _DEVICE}):
            yield _DEVICE
    finally:
        os.close(descriptor)  # first: nobody waits for it from here on
        with contextlib.suppress(OSError):  # the node has ended, or is about to
            in_mounts_of(node, _unmount)


def _mount(descriptor: int) -> None:
    with open(_DEVICE, "ab"):  # noqa: PTH123
        pass
    data = f"fd={descriptor},rootmode=100666,user_id=0,group_id=0,allow_other"
    flags = boot.MS_NOSUID | boot.MS_NODEV | boot.MS_NOEXEC
    boot.mount(source="driver", target=_DEVICE, kind="fuse.driver", flags=flags, data=data)


def _unmount() -> None:
    with contextlib.suppress(OSError):
        boot.umount(_DEVICE, flags=boot.MNT_DETACH)


def _serve(descriptor: int) -> None:
    try:
        request = os.read(descriptor, fuse.READ_BUFFER)
    except OSError:  # nothing there, or unmounted
        return
    _, opcode, unique, *_ = fuse.IN.unpack_from(request)
    if opcode == fuse.INIT:
        os.write(descriptor, fuse.init_reply(unique, request[fuse.IN.size :]))
    elif opcode in (fuse.GETATTR, fuse.SETATTR):
        with contextlib.suppress(OSError):
            os.write(descriptor, fuse.attributes(unique, size=0, seconds=0))
