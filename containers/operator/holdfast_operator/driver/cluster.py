"""Paths of the API, and the key of runs."""

import base64
import secrets

from holdfast_common import JOB_API, JOB_PLURAL, ClusterAccess, KubernetesError
from holdfast_operator.hyperpod import API, PLURAL

KEY_SECRET = "holdfast-operator-key"  # noqa: S105 - its name


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
