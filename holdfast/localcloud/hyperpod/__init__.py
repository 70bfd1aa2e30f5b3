"""
The local HyperPod: a control plane that does on this machine what the service does with instances.

It learns everything from AWS APIs at an endpoint and runs nodes with ``holdfast.localcloud.nodes``. It knows no
environment file and no stack.
"""

from holdfast.localcloud.hyperpod.control import ControlPlane, controller_node

__all__ = ["ControlPlane", "controller_node"]
