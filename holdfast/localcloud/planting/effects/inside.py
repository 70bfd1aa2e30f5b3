"""System calls in namespaces of a node, by a thread of this process that ends at once."""

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import boot

T = TypeVar("T")
_CLONE_FS = 0x200


def in_mounts_of(node: Node, action: Callable[[], T]) -> T:
    """What ``action`` returns, called where paths are the node's."""
    # A thread can be in another mount namespace than its process if it shares root and working directory with nobody.
    return _in_thread(lambda: _enter(node, "mnt", boot.CLONE_NEWNS), action)


def in_network_of(node: Node, action: Callable[[], T]) -> T:
    """What ``action`` returns, called where the network is the node's; a socket stays there."""
    return _in_thread(lambda: _enter(node, "net", boot.CLONE_NEWNET), action)


def _enter(node: Node, name: str, kind: int) -> None:
    place = os.open(f"/proc/{node.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        boot.unshare(_CLONE_FS)
        boot.setns(place, kind)
    finally:
        os.close(place)


def _in_thread(enter: Callable[[], None], action: Callable[[], T]) -> T:
    results: list[T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            enter()
            results.append(action())
        except BaseException as error:  # noqa: BLE001  carried to the calling thread
            failures.append(error)

    thread = threading.Thread(target=body, name="namespace")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
