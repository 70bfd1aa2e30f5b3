"""
LifeCycleConfig checks of CreateCluster and UpdateCluster.

Words: SageMaker developer guide, "Getting started with SageMaker HyperPod using the AWS CLI", "Common validation
errors", as far as quoted there; the rest and the order are assumed. SourceS3Uri's prefix s3://sagemaker- is required by
the managed policy, not by this API (API reference, ClusterLifeCycleConfig).
"""

import re
from typing import Any

from holdfast.localcloud.aws.common import refuse
from holdfast.localcloud.aws.sagemaker.store import RESTRICTED

FIRST_COMPATIBLE_AMI = "20260101"
"""
Older AMIs cannot make a node ready by themselves. Assumed: the guide requires "compatible" AMIs only; Slurm's
configuration through the API "requires a SageMaker HyperPod AMI released in January 2026 or later" (page
sagemaker-hyperpod-slurm-api-config-migration), so no older one is compatible.
"""
_DATE_IN_NAME = re.compile(r"\b20\d{6}\b")


def check_lifecycle(settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    """Reject a LifeCycleConfig that is contradictory, or not for the orchestrator."""
    orchestrator = settings.get("Orchestrator") or {}
    for name, group in groups.items():
        if RESTRICTED in group:
            continue
        config = group.get("LifeCycleConfig")
        if config is not None:
            _check_config(name, config)
        if "Eks" in orchestrator and "OnCreate" not in (config or {}):
            raise refuse(
                f"LifeCycleConfig is required for instance group {name}. EKS clusters need OnCreate and SourceS3Uri on "
                "every instance group."
            )


def needs_no_script(settings: dict[str, Any], group: dict[str, Any]) -> bool:
    """Return True if HyperPod makes a group's nodes ready from their AMI."""
    on_slurm = "Slurm" in (settings.get("Orchestrator") or {})
    return on_slurm and "OnCreate" not in group.get("LifeCycleConfig", {})


def is_incompatible(image: dict[str, Any]) -> bool:
    """
    Return True if an AMI, as EC2 describes it, is too old to make a node ready.

    Its age is in its name ("... (Ubuntu 22.04) 20250523", page sagemaker-hyperpod-release-ami-slurm), or its
    registration.
    """
    date = _DATE_IN_NAME.search(image.get("Name", ""))
    return (date[0] if date else image["CreationDate"][:10].replace("-", "")) < FIRST_COMPATIBLE_AMI


def incompatible_ami(name: str, image: str) -> str:
    return (
        f"LifeCycleConfig is optional but requires a compatible AMI. Instance group {name} has {image}. Run "
        "UpdateClusterSoftware to update to an AMI that supports optional node lifecycle configuration."
    )


def _check_config(name: str, config: dict[str, Any]) -> None:
    hooks = [hook for hook in ("OnCreate", "OnInitComplete") if hook in config]
    if not config:
        raise refuse(
            f"LifeCycleConfig for instance group is provided but contains no configuration: {name}. Specify "
            "SourceS3Uri with OnCreate or OnInitComplete, or omit LifeCycleConfig entirely."
        )
    if len(hooks) > 1:
        raise refuse(
            f"OnCreate and OnInitComplete in LifeCycleConfig are mutually exclusive. Instance group {name} has both."
        )
    if not hooks or "SourceS3Uri" not in config:
        missing = "SourceS3Uri" if hooks else "OnCreate or OnInitComplete"
        raise refuse(f"LifeCycleConfig for instance group is incomplete: {name} has no {missing}.")
