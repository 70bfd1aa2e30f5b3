"""The local HyperPod: a control plane that reads AWS APIs and runs instances on this machine."""

from holdfast.localcloud.hyperpod.control import ControlPlane

__all__ = ["ControlPlane"]
