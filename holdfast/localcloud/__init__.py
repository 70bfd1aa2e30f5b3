"""Rehearse: the embedded AWS (``aws``), the HyperPod control plane (``hyperpod``) and its instances (``nodes``)."""

from holdfast.localcloud.home import LocalCloudError
from holdfast.localcloud.processes import LocalCloud, ProcessError, from_environment

__all__ = ["LocalCloud", "LocalCloudError", "ProcessError", "from_environment"]
