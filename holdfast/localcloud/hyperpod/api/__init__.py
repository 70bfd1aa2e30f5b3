"""AWS APIs of the control plane, its private plane, and sessions of execution roles."""

from holdfast.localcloud.hyperpod.api.client import DEFAULT_REGION, Aws, PlaneClient, Report, Waker
from holdfast.localcloud.hyperpod.api.sessions import RoleSessions

__all__ = ["DEFAULT_REGION", "Aws", "PlaneClient", "Report", "RoleSessions", "Waker"]
