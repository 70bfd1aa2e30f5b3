"""How much of a node HyperPod makes ready itself, and which mode a group has that says none."""

from typing import Literal

LifecycleMode = Literal["extension", "custom", "none"]


def mode_of(
    *,
    group: LifecycleMode | None,
    environment: LifecycleMode | None,
    on_eks: bool,
    continuous: bool,
    scripts: LifecycleMode | None = None,
) -> LifecycleMode:
    """
    The mode of a group: its own, or that of its scripts where they are there already, or that of the environment, or
    the default.

    HyperPod takes OnCreate alone on EKS and with continuous provisioning (SageMaker developer guide, "Getting started
    with SageMaker HyperPod using the AWS CLI", note below the options), so that custom is the default there.
    """
    if group is not None:
        return group
    if scripts is not None:
        return scripts
    if environment is not None:
        return environment
    return "custom" if on_eks or continuous else "extension"
