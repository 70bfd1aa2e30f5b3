"""Command lines of a control plane's programs. Pure. Version-specific flags are in ``Binaries.flags``."""

import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass

FOLDER = "/etc/kubernetes"
KEYS = f"{FOLDER}/pki"
ETCD_DATA = "/var/lib/etcd"
WEBHOOK_PORT = 8443
"""Of the access server, on the control plane's loopback."""

PODS = "100.64.0.0/10"
"""Addresses of pods. AWS's own range for pods outside a VPC's block (EKS user guide, cni-custom-network)."""
Argv = Callable[[str], list[str]]
"""From a component's name to the program that it is."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    address: str
    """Of the control plane in the nodes' network."""
    port: int
    services: str
    """The cluster's serviceIpv4Cidr."""
    issuer: str
    """Of service account tokens: the cluster's OpenID Connect issuer."""
    access: tuple[str, ...]
    """Flags for authentication and authorization."""

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def service_address(self) -> str:
        return str(ipaddress.ip_network(self.services)[1])

    @property
    def dns_address(self) -> str:
        """Return EKS's address of the service ``kube-dns`` (EKS user guide, managing-coredns)."""
        return str(ipaddress.ip_network(self.services)[10])


@dataclass(frozen=True, kw_only=True)
class Program:
    name: str
    argv: tuple[str, ...]
    after_ready: bool = False
    """It is of no use before the API server answers. Default: False."""


def programs(settings: Settings, *, argv: Argv, flags: Callable[[str], list[str]], etcd: str) -> tuple[Program, ...]:
    def component(name: str, *own: str, after_ready: bool = True) -> Program:
        return Program(name=name, argv=(*argv(name), *own, *flags(name)), after_ready=after_ready)

    return (
        Program(name="etcd", argv=(etcd, *_etcd())),
        component("kube-apiserver", *_api_server(settings), after_ready=False),
        component("kube-controller-manager", *_controller_manager()),
        component("kube-scheduler", *_CLIENT, f"--kubeconfig={FOLDER}/scheduler.kubeconfig", *_SERVED),
        component("kube-proxy", f"--config={FOLDER}/proxy.json"),
    )


_CLIENT = ("--leader-elect=false", "--profiling=false", "--kube-api-qps=200", "--kube-api-burst=400")
_SERVED = (
    f"--tls-cert-file={KEYS}/server.crt",
    f"--tls-private-key-file={KEYS}/server.key",
    "--bind-address=127.0.0.1",
)


def _etcd() -> tuple[str, ...]:
    # What is written survives any process; only a machine that loses its power may lose the last of it.
    return (
        f"--data-dir={ETCD_DATA}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--auto-compaction-retention=5m",
        "--quota-backend-bytes=8589934592",
    )


def _api_server(settings: Settings) -> tuple[str, ...]:
    return (
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=0.0.0.0",
        f"--secure-port={settings.port}",
        f"--advertise-address={settings.address}",
        "--profiling=false",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={settings.services}",
        f"--tls-cert-file={KEYS}/server.crt",
        f"--tls-private-key-file={KEYS}/server.key",
        f"--client-ca-file={KEYS}/ca.crt",
        "--cert-dir=/run/kube",
        *settings.access,
        "--enable-admission-plugins=NodeRestriction",
        # For clients of clients: a service may be an address of a pod, which is reached without kube-proxy.
        "--enable-aggregator-routing=true",
        f"--requestheader-client-ca-file={KEYS}/ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={KEYS}/front-proxy.crt",
        f"--proxy-client-key-file={KEYS}/front-proxy.key",
        f"--service-account-issuer={settings.issuer}",
        f"--service-account-signing-key-file={KEYS}/sa.key",
        f"--service-account-key-file={KEYS}/sa.key",
        "--api-audiences=https://kubernetes.default.svc",
        f"--kubelet-certificate-authority={KEYS}/ca.crt",
        f"--kubelet-client-certificate={KEYS}/kubelet-client.crt",
        f"--kubelet-client-key={KEYS}/kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
    )


def _controller_manager() -> tuple[str, ...]:
    return (
        *_CLIENT,
        *_SERVED,
        f"--kubeconfig={FOLDER}/controller-manager.kubeconfig",
        # Without it the manager may not take the taint from a node that has become ready.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={KEYS}/sa.key",
        f"--root-ca-file={KEYS}/ca.crt",
        f"--cluster-signing-cert-file={KEYS}/ca.crt",
        f"--cluster-signing-key-file={KEYS}/ca.key",
        # A cluster all of whose nodes are new counts as disturbed, and with the default rates nothing is evicted then.
        "--node-eviction-rate=10",
        "--secondary-node-eviction-rate=10",
        "--large-cluster-size-threshold=0",
    )


def proxy_configuration(settings: Settings) -> bytes:
    """Return the configuration of the one kube-proxy for all nodes; masquerading routes the answers back."""
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "bindAddress": settings.address,  # else it looks for a Node of its own name, which there is not
            "clusterCIDR": PODS,
            "clientConnection": {"kubeconfig": f"{FOLDER}/proxy.kubeconfig"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"},
            "iptables": {"masqueradeAll": True},
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
        }
    ).encode()
