"""
The AWS APIs as the control plane uses them, its private plane, and the sessions of execution roles. Answers become
values of `model`.
"""

from holdfast.localcloud.hyperpod.api.client import DEFAULT_REGION, Aws, Plane, Report, Waker
from holdfast.localcloud.hyperpod.api.sessions import RoleSessions

__all__ = ["DEFAULT_REGION", "Aws", "Plane", "Report", "RoleSessions", "Waker"]
