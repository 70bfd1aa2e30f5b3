"""Services of this process for clusters: access reviews, pods' credentials, images."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.image import ENVIRONMENT_PROGRAMS, TRAINING_ENVIRONMENT
from holdfast.localcloud.kubernetes import access, images
from holdfast.localcloud.kubernetes.control import KEYS, WEBHOOK_CLIENT, WEBHOOK_PORT, Authority
from holdfast.localcloud.kubernetes.older_server import COMPLETIONS_LABEL, Indexes
from holdfast.localcloud.nodes import Fleet, Node, python_mounts
from holdfast.localcloud.supervision import Worker, together
from holdfast_common import KubernetesClient

AUDIENCE = "pods.eks.amazonaws.com"
_LOCAL = "127.0.0.1"
_FOLDER = Path("/etc/kubernetes/access")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Account:
    region: str
    endpoint: str
    """As this process reaches it."""
    client: Callable[..., Any]
    """Makes a boto3 client of a service, of the account's owner or with the credentials that are given."""


def api_server_side() -> access.ApiServerSide:
    return access.ApiServerSide(
        address=f"{_LOCAL}:{WEBHOOK_PORT}",
        authority=Path(KEYS, "ca.crt"),
        certificate=Path(KEYS, "webhook.crt"),
        key=Path(KEYS, "webhook.key"),
        directory=_FOLDER,
    )


def node_root() -> images.NodeRoot:
    """Return the paths that pods on the node's files see; nodes' programs cover the environment's own."""
    shown = tuple(mount.target for mount in python_mounts(at=TRAINING_ENVIRONMENT))
    return images.NodeRoot(environment=(*shown, ENVIRONMENT_PROGRAMS, f"{TRAINING_ENVIRONMENT}/bin"))


class AccessService:
    """Access reviews of one cluster; ``nodes_endpoint``: URL of the embedded AWS for nodes and pods."""

    def __init__(
        self,
        *,
        cluster_name: str,
        authority: Authority,
        account: Account,
        directory: Path,
        nodes_endpoint: str,
        api: KubernetesClient,
    ) -> None:
        port = account.endpoint.rpartition(":")[2].rstrip("/")
        hosts = (f"localhost:{port}", f"127.0.0.1:{port}", nodes_endpoint.removeprefix("http://"))
        settings = access.Settings(
            cluster_name=cluster_name,
            region=account.region,
            endpoint=account.endpoint,
            hosts=hosts,
            pod_endpoint=nodes_endpoint,
        )
        self._access = access.Access(settings=settings, eks=account.client("eks"))
        self._api = api
        self._indexes = Indexes(
            pods=lambda namespace: api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=COMPLETIONS_LABEL)
        )
        self._certificates = _write_certificates(directory, authority)
        self._authority = authority
        self._server: access.AccessServer | None = None
        self._serves = 0

    def serve(self, node: Node) -> None:
        """Listen inside the control plane's instance; again after a restart of the instance."""
        if self._serves == node.pid:
            return
        self.stop()
        listener = node.listen(_LOCAL, WEBHOOK_PORT)
        self._server = access.AccessServer(
            access=self._access, indexes=self._indexes, listener=listener, certificates=self._certificates
        )
        self._server.start()
        self._serves = node.pid

    def announce(self) -> None:
        webhook = access.pod_webhook(address=f"{_LOCAL}:{WEBHOOK_PORT}", authority_pem=self._authority.certificate)
        name = webhook["metadata"]["name"]
        path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"
        self._api.apply(path, webhook, manager="eks", force=True)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        self._server, self._serves = None, 0

    def workers(self) -> list[Worker]:
        return [self._server.worker] if self._server is not None else []


class SharedServices:
    """Services for all nodes of a home: the image registry, and the agent for pods' credentials."""

    def __init__(self, *, home: Path, fleet: Fleet, account: Account) -> None:
        self._home, self._fleet, self._account = home, fleet, account
        self._registry: images.Registry | None = None
        self._agent: access.PodIdentityAgent | None = None

    def serve(self, *, gateway: str, cluster_name: str, api: KubernetesClient) -> None:
        """Start once. Credentials are for the pods of the first cluster only."""
        if self._registry is None:
            self._registry = images.Registry(
                listener=self._fleet.listen(gateway, images.PORT),
                store=ImageStore(home=self._home),
                stand_ins=images.stand_ins(),
                root=node_root(),
                is_node=self._is_node,
            )
            self._registry.start()
        if self._agent is None:
            identity = access.PodIdentity(
                cluster_name=cluster_name,
                region=self._account.region,
                client=self._account.client,
                review=lambda token: review(api, token),
            )
            listener = self._fleet.listen(access.ADDRESS, access.PORT)
            self._agent = access.PodIdentityAgent(listener=listener, identity=identity)
            self._agent.start()

    def stop(self) -> None:
        together(*(part.stop for part in (self._registry, self._agent) if part is not None))
        self._registry = self._agent = None

    def workers(self) -> list[Worker]:
        return [part.worker for part in (self._registry, self._agent) if part is not None]

    def _is_node(self, address: str) -> bool:
        return any(node.spec.address == address for node in self._fleet.nodes())


def review(api: KubernetesClient, token: str) -> Any:
    """Return the status of a TokenReview for pods' credentials. Raises: KubernetesError."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": [AUDIENCE]},
    }
    return api.create("/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]


def _write_certificates(directory: Path, authority: Authority) -> access.Certificates:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    pair = authority.server("holdfast-access", addresses=[_LOCAL])
    found = {"ca.crt": authority.certificate, "server.crt": pair.certificate, "server.key": pair.key}
    for name, content in found.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
    return access.Certificates(
        authority=directory / "ca.crt",
        certificate=directory / "server.crt",
        key=directory / "server.key",
        client_name=WEBHOOK_CLIENT,
    )
