"""Boot configuration of a node, and the start of its services."""

import json
import os
import re
import resource
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.kubernetes import stand_ins
from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast.localcloud.kubernetes.control import Authority, Settings, kubeconfig
from holdfast.localcloud.kubernetes.images import RUNTIME, STAND_INS, NodeRoot, node_files, node_mounts
from holdfast.localcloud.kubernetes.nodes import files, size
from holdfast.localcloud.kubernetes.nodes.labels import Member
from holdfast.localcloud.nodes import FileSpec, Mount, Node, NodeError

TOOLS = "/opt/kube/tools"
CONTAINERS = "/var/lib/containerd"
"""On a disk of its own: overlays of containers cannot lie on the overlay that a node's root is."""
VOLUME = "/opt/sagemaker"
"""HyperPod's mount point of a group's volume (EbsVolumeConfig)."""
START_TIMEOUT_S = 60.0
SERVICES = ("containerd", "kubelet")
_CAP_SYS_RESOURCE = 24
_FATAL = re.compile(rb"^F\d{4} .*", re.MULTILINE)
"""A line after which a component ends; stacks of all goroutines follow (k8s.io/klog, klog.go)."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Additions to the ``NodeSpec`` of an instance."""

    files: dict[str, FileSpec]
    mounts: tuple[Mount, ...]
    kernel_files: dict[str, bytes]


def parts(
    member: Member,
    *,
    settings: Settings,
    authority: Authority,
    binaries: Binaries,
    store: ImageStore,
    registry: str,
    root: NodeRoot,
    directory: Path,
    disks: Path,
) -> Parts:
    """
    Return the additions for one node.

    Args:
        registry: HOST:PORT of the registry on nodes.
        root: Paths that pods on the node's files see.
        directory: Shared data of nodes of one instance type.
        disks: The instance's own, kept while it exists.
    """
    name = f"system:node:{member.name}"
    client = authority.client(name, groups=["system:nodes"])
    serving = authority.server(name, names=[member.name], addresses=[member.address])
    found = files.member_files(
        member,
        dns_address=settings.dns_address,
        authority=authority.certificate,
        serving=(serving.certificate, serving.key),
        kubeconfig=kubeconfig(server=settings.url, authority=authority, pair=client),
        flags=binaries.flags("kubelet"),
        host_ports=(binaries.cni / "portmap").exists(),
        may_lower_oom_score=_may_use(_CAP_SYS_RESOURCE),
    )
    numa = size.make_numa_nodes(directory / "sizes", instance_type=member.instance_type)
    programs = {
        "/usr/bin/containerd": binaries.containerd,
        "/usr/bin/containerd-shim-runc-v2": binaries.containerd_shim,
        "/usr/bin/ctr": binaries.ctr,
        files.CNI_PROGRAMS: binaries.cni,
        TOOLS: binaries.directory,
        size.NUMA_NODES: numa,
    }
    if not Path(size.NUMA_NODES).is_dir():
        del programs[size.NUMA_NODES]
    volumes = [CONTAINERS, *([VOLUME] if member.has_volume else [])]
    accelerators, counts = stand_ins.accelerators(size.extended_resources(member.instance_type))
    return Parts(
        files={
            **{path: FileSpec(content=file.content, mode=file.mode) for path, file in found.items()},
            "/usr/bin/kubelet": FileSpec(content=_kubelet(binaries), mode=0o755),
            files.BASE_SPEC: FileSpec(content=_base_spec(binaries, directory / "base-runtime-spec.json")),
            accelerators: FileSpec(content=counts),
            files.RUNTIME: FileSpec(content=_RUNTIME.encode(), mode=0o755),
            **node_files(registry=registry, runc=f"{TOOLS}/{binaries.runc.name}", root=root),
        },
        mounts=(
            *(Mount(source=source, target=target, read_only=True) for target, source in programs.items()),
            *(Mount(source=_made(disks / Path(volume).name), target=volume) for volume in volumes),
            *node_mounts(store),
            *_stand_ins(binaries),
        ),
        kernel_files={
            **files.kernel_files(member, meminfo=Path(size.MEMORY).read_text()),
            # Kubernetes detects a reboot by it: `bootID` of a Node (and of the event "Rebooted").
            "/proc/sys/kernel/random/boot_id": f"{uuid.uuid4()}\n".encode(),
        },
    )


def start_services(node: Node) -> None:
    """Start containerd and the kubelet, as the image does after the lifecycle scripts. Raises: NodeError."""
    try:
        done = node.run(["systemctl", "start", *SERVICES], timeout_s=START_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise NodeError(f"{' and '.join(SERVICES)} did not start within {START_TIMEOUT_S:g} s") from None
    if done.returncode:
        output = " ".join((done.stdout + done.stderr).split())[-500:]
        raise NodeError(f"{' or '.join(SERVICES)} did not start: {output}")


def last_complaint(log: bytes) -> str:
    """Return the end of a kubelet as its log has it: the last fatal line, otherwise the last three lines."""
    lines = _FATAL.findall(log)[-1:] or log.strip().splitlines()[-3:]
    return " | ".join(line.decode(errors="replace")[:600] for line in lines)


def _kubelet(binaries: Binaries) -> bytes:
    program = " ".join(binaries.argv("kubelet", directory=Path(TOOLS)))
    return f'#!/bin/sh\nexec {program} "$@"\n'.encode()


def _base_spec(binaries: Binaries, kept: Path) -> bytes:
    """Return containerd's default specification, with Amazon's limit of open files."""
    if not kept.exists():
        done = subprocess.run(
            [binaries.ctr, "oci", "spec"],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=START_TIMEOUT_S,
        )
        spec = json.loads(done.stdout)
        soft, hard = (min(limit, _most_files()) for limit in (65536, 1048576))
        spec["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": soft, "hard": hard}]
        fresh = kept.with_name(f".{kept.name}.{os.getpid()}.{threading.get_native_id()}")
        fresh.write_text(json.dumps(spec))
        fresh.rename(kept)
    return kept.read_bytes()


_RUNTIME = f"""\
#!/bin/sh
# What NVIDIA's runtime is to containerd. Amazon's scripts ask for cgroups by systemd, which a node here has not.
for word; do
    shift
    [ "$word" = --systemd-cgroup ] || set -- "$@" "$word"
done
exec {RUNTIME} "$@"
"""


def _stand_ins(binaries: Binaries) -> tuple[Mount, ...]:
    if binaries.stand_ins is None:
        return ()
    return (Mount(source=binaries.stand_ins, target=STAND_INS, read_only=True),)


def _most_files() -> int:
    """Return the limit of open files for containers: raising it needs CAP_SYS_RESOURCE."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if _may_use(_CAP_SYS_RESOURCE) or hard == resource.RLIM_INFINITY else hard


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _may_use(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapBnd:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False
