"""Rehearse: the embedded AWS (``aws``), the HyperPod control plane (``hyperpod``) and its instances (``nodes``)."""

from holdfast.localcloud._localcloud import LocalCloud, LocalCloudError, from_environment
from holdfast.localcloud._process import ProcessError

__all__ = ["LocalCloud", "LocalCloudError", "ProcessError", "from_environment"]
