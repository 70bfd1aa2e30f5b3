"""
The local HyperPod: a control plane that runs instances on this machine.

It reads AWS APIs at an endpoint and runs nodes with ``holdfast.localcloud.nodes``, without environment file or stack.
"""

from holdfast.localcloud.hyperpod.control import ControlPlane, controller_node

__all__ = ["ControlPlane", "controller_node"]
