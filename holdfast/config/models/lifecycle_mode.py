"""Lifecycle mode of a group, and its default."""

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
    Mode of a group: its own, that of its existing scripts, that of the environment, or the default.

    HyperPod accepts only OnCreate on EKS, and by an older version of the page with continuous provisioning (SageMaker
    developer guide, "Getting started with SageMaker HyperPod using the AWS CLI"): there the default is custom.
    """
    if group is not None:
        return group
    if scripts is not None:
        return scripts
    if environment is not None:
        return environment
    return "custom" if on_eks or continuous else "extension"
