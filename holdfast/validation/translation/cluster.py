"""Properties of a cluster."""

from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Properties
from holdfast.validation.model import Cluster, Slurm
from holdfast.validation.translation.properties import Places, properties_of

SHARED_ENVIRONMENT = ("RestrictedInstanceGroupsConfig", "SharedEnvironmentConfig")


def cluster(
    described: object = None,
    *,
    auto_scaling: bool | None = None,
    tiered_storage: bool | None = None,
    lustre_deletion_policy: Any = None,
    tags: Mapping[str, str],
    places: Places = None,
    **others: Any,
) -> Properties:
    """
    Return the properties of a cluster.

    Args:
        auto_scaling, tiered_storage: Whether they are on; None: without.
        lustre_deletion_policy: Of the file system that restricted groups share; None: they share nothing.
    """
    pairs = tags if tags is UNRESOLVED else [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    found = properties_of(Cluster, described, places=places, tags=pairs, **others)
    found.put(["AutoScaling", "Mode"], _mode(enabled=auto_scaling))
    found.put(["TieredStorageConfig", "Mode"], _mode(enabled=tiered_storage))
    found.put([*SHARED_ENVIRONMENT, "FSxLustreDeletionPolicy"], lustre_deletion_policy)
    return found


def slurm_orchestrator(*, config_strategy: Any, accounting: Properties | None, **source: Any) -> Properties:
    found = Properties(source.get("path", ""))
    held = properties_of(Slurm, config_strategy=config_strategy, accounting=accounting, **source)
    found.put(["Slurm"], held, held.path)
    return found


def eks_orchestrator(*, cluster_arn: Any, path: str = "") -> Properties:
    found = Properties(path)
    found.put(["Eks", "ClusterArn"], cluster_arn)
    return found


def _mode(*, enabled: bool | None) -> str | None:
    return None if enabled is None else "Enable" if enabled else "Disable"
