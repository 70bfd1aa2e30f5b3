"""
Files of a node: containerd, kubelet and pod network. Pure.

Paths are those of Amazon's image for EKS on Amazon Linux 2023 (awslabs/amazon-eks-ami, templates/al2023 and nodeadm,
read on 2026-11-23), because lifecycle scripts read and change them.
"""

import ipaddress
import json
from dataclasses import dataclass

from holdfast.localcloud.kubernetes.control import PODS
from holdfast.localcloud.kubernetes.images import SANDBOX_IMAGE
from holdfast.localcloud.kubernetes.nodes import size
from holdfast.localcloud.kubernetes.nodes.labels import Member, labels

POD_PREFIX = 24
_SHARES = 1 << (POD_PREFIX - ipaddress.ip_network(PODS).prefixlen)

KUBECONFIG = "/etc/kubernetes/kubelet.kubeconfig"
PKI = "/etc/kubernetes/pki"
KUBELET_CONFIG = "/etc/kubernetes/kubelet/config.json"
CONTAINERD_CONFIG = "/etc/containerd/config.toml"
BASE_SPEC = "/etc/containerd/base-runtime-spec.json"
CNI_CONFIG = "/etc/cni/net.d/10-holdfast.conflist"
CNI_PROGRAMS = "/opt/cni/bin"
RUNTIME = "/usr/bin/nvidia-container-runtime"
"""The runtime of containers on nodes with GPUs; AWS's lifecycle scripts name it."""
UNITS = "/etc/systemd/system"

SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""Kernel settings that the kubelet would set for the whole machine (pkg/kubelet/cm, setupKernelTunables)."""


@dataclass(frozen=True, kw_only=True)
class File:
    content: bytes
    mode: int = 0o644


def pod_network(address: str) -> str:
    """Return the pods' network of a node, from the last 14 bits of its address, unique in HyperPod's subnets here."""
    number = int(ipaddress.ip_address(address)) % _SHARES
    first = int(ipaddress.ip_network(PODS)[0]) + number * (1 << (32 - POD_PREFIX))
    return f"{ipaddress.ip_address(first)}/{POD_PREFIX}"


def member_files(
    member: Member,
    *,
    dns_address: str,
    authority: bytes,
    serving: tuple[bytes, bytes],
    kubeconfig: bytes,
    flags: list[str],
    host_ports: bool,
    may_lower_oom_score: bool,
) -> dict[str, File]:
    """
    Return all files by path.

    Args:
        serving: Server certificate and key of the kubelet.
        flags: Version-specific flags of the kubelet.
        host_ports: The network plugin for host ports is installed.
        may_lower_oom_score: This machine allows lower OOM scores (CAP_SYS_RESOURCE).
    """
    default = "nvidia" if "nvidia.com/gpu" in size.extended_resources(member.instance_type) else "runc"
    return {
        f"{PKI}/ca.crt": File(content=authority),
        f"{PKI}/kubelet.crt": File(content=serving[0]),
        f"{PKI}/kubelet.key": File(content=serving[1], mode=0o600),
        KUBECONFIG: File(content=kubeconfig, mode=0o600),
        KUBELET_CONFIG: File(content=_kubelet(member, dns_address=dns_address)),
        CONTAINERD_CONFIG: File(content=_containerd(default=default, may_lower_oom_score=may_lower_oom_score)),
        CNI_CONFIG: File(content=_network(member, host_ports=host_ports)),
        "/etc/eks/kubelet/environment": File(content=f"NODEADM_KUBELET_ARGS={_arguments(member, flags)}\n".encode()),
        f"{UNITS}/containerd.service": File(content=_CONTAINERD_UNIT),
        f"{UNITS}/kubelet.service": File(content=_KUBELET_UNIT),
    }


def kernel_files(member: Member, *, meminfo: str) -> dict[str, bytes]:
    settings = {f"/proc/sys/{name}": f"{value}\n".encode() for name, value in SETTINGS.items()}
    return {**settings, **size.kernel_files(member.instance_type, meminfo=meminfo)}


def _arguments(member: Member, flags: list[str]) -> str:
    text = ",".join(f"{key}={value}" for key, value in labels(member).items())
    taints = ",".join(str(taint) for taint in member.taints)
    return " ".join(
        [
            f"--config={KUBELET_CONFIG}",
            f"--kubeconfig={KUBECONFIG}",
            "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
            f"--hostname-override={member.name}",
            f"--node-ip={member.address}",
            f"--node-labels={text}",
            *([f"--register-with-taints={taints}"] if taints else []),
            *flags,
        ]
    )


def _kubelet(member: Member, *, dns_address: str) -> bytes:
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True, "cacheTTL": "2m0s"},
                "x509": {"clientCAFile": f"{PKI}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{PKI}/kubelet.crt",
            "tlsPrivateKeyFile": f"{PKI}/kubelet.key",
            "providerID": member.provider_id,
            "maxPods": size.most_pods(member.instance_type),
            "kubeReserved": size.kube_reserved(member.instance_type),
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%"},
            "clusterDNS": [dns_address],
            "clusterDomain": "cluster.local",
            "serializeImagePulls": False,
            # Containers here are in cgroups as cgroupfs makes them: there is no systemd on a node.
            "cgroupDriver": "cgroupfs",
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "enableControllerAttachDetach": False,
            "nodeStatusUpdateFrequency": "4s",
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "containerLogMaxSize": "10Mi",
        }
    ).encode()


def _containerd(*, default: str, may_lower_oom_score: bool) -> bytes:
    """``default``: nvidia or runc, the default runtime of containers."""
    runtimes = "".join(_RUNTIME.format(name=name) for name in ("runc", "nvidia"))
    return (
        _CONTAINERD.format(
            default=default, sandbox=SANDBOX_IMAGE, restrict=str(not may_lower_oom_score).lower(), cni=CNI_PROGRAMS
        )
        + runtimes
    ).encode()


_CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{sandbox}"
disable_apparmor = true
restrict_oom_score_adj = {restrict}

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "{default}"
discard_unpacked_layers = true

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d:/etc/docker/certs.d"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "/etc/cni/net.d"
"""

_RUNTIME = f"""
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{{name}}]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "{BASE_SPEC}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{{name}}.options]
BinaryName = "{RUNTIME}"
SystemdCgroup = false
"""


def _network(member: Member, *, host_ports: bool) -> bytes:
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": pod_network(member.address)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/cni/ipam",
    }
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
    ports = [{"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}] if host_ports else []
    return json.dumps({"cniVersion": "0.4.0", "name": "holdfast", "plugins": [bridge, *ports]}).encode()


# After nodeadm's units: the kubelet's arguments are in a file, and both come back whatever ended them.
_CONTAINERD_UNIT = b"""\
[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target

[Service]
Environment=GOMAXPROCS=2
Environment=GOGC=40
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
LimitNOFILE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""

_KUBELET_UNIT = b"""\
[Unit]
Description=Kubernetes Kubelet
Documentation=https://github.com/kubernetes/kubernetes
After=containerd.service
Wants=containerd.service

[Service]
Slice=runtime.slice
EnvironmentFile=/etc/eks/kubelet/environment
Environment=GOMAXPROCS=2
Environment=GOGC=40
Environment=AWS_EC2_METADATA_DISABLED=true
ExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS
Restart=on-failure
RestartForceExitStatus=SIGPIPE
RestartSec=5
KillMode=process
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
"""
