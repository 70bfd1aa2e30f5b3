"""System calls in namespaces of a node."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import boot
from holdfast.localcloud.nodes.kernel.namespaces import in_namespace

T = TypeVar("T")


def in_mounts_of(node: Node, action: Callable[[], T]) -> T:
    """Call ``action`` with the node's paths."""
    return in_namespace(Path(f"/proc/{node.pid}/ns/mnt"), boot.CLONE_NEWNS, action)


def in_network_of(node: Node, action: Callable[[], T]) -> T:
    """Call ``action`` in the node's network; a socket stays there."""
    return in_namespace(Path(f"/proc/{node.pid}/ns/net"), boot.CLONE_NEWNET, action)
