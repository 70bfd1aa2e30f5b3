"""The control plane of one EKS cluster: etcd, API server and controllers on a machine of their own beside the nodes."""

from holdfast.localcloud.kubernetes.control.components import PODS, Settings
from holdfast.localcloud.kubernetes.control.control_plane import ControlPlane, erase
from holdfast.localcloud.kubernetes.control.keys import Authority, Pair, kubeconfig

__all__ = ["PODS", "Authority", "ControlPlane", "Pair", "Settings", "erase", "kubeconfig"]
