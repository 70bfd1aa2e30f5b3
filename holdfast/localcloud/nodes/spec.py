import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_INSTANCE_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_HOSTNAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class NodeError(Exception):
    """A node or the fleet cannot do it; the message has the fix."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    source: Path
    target: str
    read_only: bool = False

    def __post_init__(self) -> None:
        if not self.target.startswith("/") or ".." in self.target.split("/"):
            raise NodeError(f"mount target must be an absolute path without '..', got {self.target!r}")


@dataclass(frozen=True, kw_only=True)
class FileSpec:
    content: bytes
    mode: int = 0o644
    owner: str = "root:root"
    """``user:group`` by the node's names, or numbers."""


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One virtual instance. Where ``files`` and ``mounts`` meet, the mount wins."""

    instance_id: str
    hostname: str
    address: str
    mounts: tuple[Mount, ...] = ()
    files: Mapping[str, FileSpec] = field(default_factory=dict)
    """Path to file. Not kept on disk: empty for a node that another process booted."""
    image: Path | None = None
    """
    A directory that lies over the machine's root and under what the node writes; one for many nodes.

    Not on the disk of the machine's root: ``Fleet.directory`` is a tmpfs and has room for it. Default: none.
    """

    runs_containers: bool = False
    """
    A container runtime runs on it: it has cgroups of its own, may make device nodes and set what its network goes by.

    Default: False.
    """
    kernel_files: Mapping[str, bytes] = field(default_factory=dict)
    """Path below /proc or /sys to what the node reads there, and may write, in place of the kernel's. Default: none."""

    def __post_init__(self) -> None:
        if not _INSTANCE_ID.fullmatch(self.instance_id):
            raise NodeError(f"instance id must match {_INSTANCE_ID.pattern}, got {self.instance_id!r}")
        if not _HOSTNAME.fullmatch(self.hostname):
            raise NodeError(f"host name must match {_HOSTNAME.pattern}, got {self.hostname!r}")
        try:
            ipaddress.IPv4Address(self.address)
        except ValueError as error:
            raise NodeError(f"address must be an IPv4 address, got {self.address!r}") from error
        for path in (*self.files, *self.kernel_files):
            if not path.startswith("/") or ".." in path.split("/"):
                raise NodeError(f"file path must be absolute without '..', got {path!r}")


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """Record to find a running node. ``start_ticks`` detects a recycled pid."""

    spec: NodeSpec
    pid: int
    start_ticks: int
    link: str
    layers: tuple[str, ...]
    """Mount points of the overlays, ``/`` first; layer N keeps its writes in ``layers/N/upper``."""

    def to_json(self) -> str:
        spec = self.spec
        mounts = [{"source": str(m.source), "target": m.target, "read_only": m.read_only} for m in spec.mounts]
        document = {
            "instance_id": spec.instance_id,
            "hostname": spec.hostname,
            "address": spec.address,
            "image": str(spec.image) if spec.image else None,
            "mounts": mounts,
            "runs_containers": spec.runs_containers,
            "pid": self.pid,
            "start_ticks": self.start_ticks,
            "link": self.link,
            "layers": list(self.layers),
        }
        return json.dumps(document, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> "NodeRecord":
        document: dict[str, Any] = json.loads(text)
        mounts = tuple(
            Mount(source=Path(m["source"]), target=m["target"], read_only=m["read_only"]) for m in document["mounts"]
        )
        spec = NodeSpec(
            instance_id=document["instance_id"],
            hostname=document["hostname"],
            address=document["address"],
            mounts=mounts,
            image=Path(document["image"]) if document.get("image") else None,
            runs_containers=document.get("runs_containers", False),
        )
        return NodeRecord(
            spec=spec,
            pid=document["pid"],
            start_ticks=document["start_ticks"],
            link=document["link"],
            layers=tuple(document["layers"]),
        )


def write_atomically(*, path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
