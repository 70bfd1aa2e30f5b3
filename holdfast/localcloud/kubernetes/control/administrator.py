"""EKS's own way into a cluster that runs, for what is done in it beside its control plane."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.localcloud.kubernetes.api import Api
from holdfast.localcloud.kubernetes.control.keys import Authority
from holdfast.localcloud.kubernetes.model import parse_eks_cluster

USER, GROUPS = "eks:addon-manager", ("system:masters",)
"""The user is EKS's (user guide, default-roles-users, read on 2026-11-23); there it has a role of its own."""


def administrator(directory: Path, described: Mapping[str, Any]) -> Api | None:
    """
    The API server of a cluster, for somebody with all rights.

    Args:
        directory: Where the keys of clusters lie.
        described: The cluster, as DescribeCluster has it.

    Returns:
        None: the cluster has no keys here, so that it is no real one of this home.
    """
    cluster = parse_eks_cluster(described)
    keys = directory / cluster.key / "pki"
    port = urlsplit(cluster.endpoint).port
    if port is None or not (keys / "sa.key").exists():  # the last of the keys that is made
        return None
    authority = Authority(keys)
    pair = authority.client(USER, groups=GROUPS)
    return Api(host="127.0.0.1", port=port, authority=authority.certificate, certificate=pair.certificate, key=pair.key)
