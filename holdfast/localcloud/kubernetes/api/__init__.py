"""The API of Kubernetes as the control plane of the local cloud uses it."""

from holdfast.localcloud.kubernetes.api.client import Api, ApiError, Object

__all__ = ["Api", "ApiError", "Object"]
