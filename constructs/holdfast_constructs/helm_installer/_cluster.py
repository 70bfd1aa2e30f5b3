"""Access to an EKS cluster from its endpoint, certificate and name alone, so that a closed network suffices."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.model import ServiceId
from botocore.signers import RequestSigner

TOKEN_SIGNATURE_S = 60
"""For how long EKS accepts the signature; the token it stands for is good for 15 minutes."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """An EKS cluster."""

    name: str
    endpoint: str
    certificate_authority: str
    """Base64, as EKS hands it out."""


def write_kubeconfig(path: Path, *, cluster: Cluster, token: str) -> None:
    """Write what helm needs to know, readable by this user only. JSON is YAML."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "eks",
        "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "installer"}}],
        "clusters": [
            {
                "name": "eks",
                "cluster": {
                    "server": cluster.endpoint,
                    "certificate-authority-data": cluster.certificate_authority,
                },
            }
        ],
        "users": [{"name": "installer", "user": {"token": token}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))


def sign_in(cluster: Cluster, session: boto3.Session) -> str:
    """A token for the cluster: a signed question to STS, "who am I", that EKS asks for us. Nothing is sent here."""
    sts = session.client("sts")
    signer = RequestSigner(
        ServiceId("STS"), sts.meta.region_name, "sts", "v4", session.get_credentials(), sts.meta.events
    )
    url = signer.generate_presigned_url(
        {
            "method": "GET",
            "url": f"{sts.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {"x-k8s-aws-id": cluster.name},
            "context": {},
        },
        operation_name="",
        expires_in=TOKEN_SIGNATURE_S,
        region_name=sts.meta.region_name,
    )
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
