"""Control plane of one EKS cluster: etcd, API server and controllers on a virtual instance beside the nodes."""

from holdfast.localcloud.kubernetes.control.administrator import administrator
from holdfast.localcloud.kubernetes.control.components import (
    KEYS,
    PODS,
    WEBHOOK_PORT,
    Settings,
    programs,
    proxy_configuration,
)
from holdfast.localcloud.kubernetes.control.control_plane import WEBHOOK_CLIENT, ControlPlane, erase
from holdfast.localcloud.kubernetes.control.keeper import Keeper
from holdfast.localcloud.kubernetes.control.keys import Authority, kubeconfig

__all__ = [
    "KEYS",
    "PODS",
    "WEBHOOK_CLIENT",
    "WEBHOOK_PORT",
    "Authority",
    "ControlPlane",
    "Keeper",
    "Settings",
    "administrator",
    "erase",
    "kubeconfig",
    "programs",
    "proxy_configuration",
]
