"""EKS's own client of a running cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.localcloud.kubernetes.control.keys import Authority
from holdfast.localcloud.kubernetes.model import LOOPBACK, parse_eks_cluster
from holdfast_common import KubernetesClient

USER = "eks:addon-manager"
"""The user is EKS's (user guide, default-roles-users, read on 2026-11-23); there it has a role of its own."""


def administrator(directory: Path, described: Mapping[str, Any]) -> KubernetesClient | None:
    """Return EKS's client with all rights; None for a cluster without keys in ``directory``, a record only."""
    cluster = parse_eks_cluster(described)
    keys = directory / cluster.key / "pki"
    if not cluster.endpoint.startswith(LOOPBACK) or not (keys / "sa.key").exists():  # the last of the keys that is made
        return None
    return client_of(Authority(keys), endpoint=cluster.endpoint, user=USER)


def client_of(authority: Authority, *, endpoint: str, user: str) -> KubernetesClient:
    """Return a client with all rights."""
    pair = authority.client(user, groups=["system:masters"])
    return KubernetesClient(
        endpoint=endpoint, authority=authority.certificate.decode(), certificate=pair.certificate + pair.key
    )
