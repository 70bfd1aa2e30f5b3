"""Rehearse: the embedded AWS (``aws``), the HyperPod control plane (``hyperpod``) and its instances (``nodes``)."""

from holdfast.localcloud._errors import LocalCloudError
from holdfast.localcloud._localcloud import LocalCloud, from_environment
from holdfast.localcloud._process import ProcessError

__all__ = ["LocalCloud", "LocalCloudError", "ProcessError", "from_environment"]
