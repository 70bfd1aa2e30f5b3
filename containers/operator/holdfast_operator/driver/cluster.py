"""Access to the API server of the pod's cluster."""

import base64
import os
import secrets
from pathlib import Path

from holdfast_common import JOB_API, JOB_PLURAL, KubernetesClient, KubernetesError
from holdfast_operator.hyperpod import API, PLURAL

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
KEY_SECRET = "holdfast-operator-key"  # noqa: S105 - its name


class ClusterAccess:
    """
    Clients of one API server, by default the pod's.

    Args:
        account: Folder with ``token``, ``ca.crt`` and ``namespace``. The kubelet renews the token.
    """

    def __init__(self, *, endpoint: str = "", account: Path = ACCOUNT) -> None:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self._endpoint = endpoint or (f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
        self._account = account
        self._token = ""
        self._client: KubernetesClient | None = None

    @property
    def namespace(self) -> str:
        return (self._account / "namespace").read_text("ascii").strip()

    def client(self) -> KubernetesClient:
        """Return a client with the current token. Raises: OSError: no service account is mounted."""
        token = (self._account / "token").read_text("ascii").strip()
        if self._client is None or token != self._token:
            authority = (self._account / "ca.crt").read_text("ascii")
            self._client = KubernetesClient(endpoint=self._endpoint, authority=authority, token=token)
            self._token = token
        return self._client


def run_key(access: ClusterAccess) -> bytes:
    """Return the key of all tokens of runs; the first operator creates it. Raises: KubernetesError."""
    path = f"/api/v1/namespaces/{access.namespace}/secrets"
    client = access.client()
    body = {"metadata": {"name": KEY_SECRET}, "type": "Opaque", "stringData": {"key": secrets.token_hex(32)}}
    try:
        client.create(path, body)
    except KubernetesError as error:
        if error.code != 409:
            raise
    return base64.b64decode(client.get(f"{path}/{KEY_SECRET}")["data"]["key"])


def jobs_path(namespace: str = "", name: str = "") -> str:
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{JOB_API}{where}/{JOB_PLURAL}" + (f"/{name}" if name else "")


def hyperpod_jobs_path(namespace: str = "", name: str = "") -> str:
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API}{where}/{PLURAL}" + (f"/{name}" if name else "")


def pods_path(namespace: str = "", name: str = "") -> str:
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"/api/v1{where}/pods" + (f"/{name}" if name else "")
