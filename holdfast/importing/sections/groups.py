from collections.abc import Mapping
from typing import Any

from holdfast.config.models import InstanceGroup, RestrictedInstanceGroup, ScheduledUpdate
from holdfast.importing.draft import Draft
from holdfast.importing.sections.settings import of_model, properties_of, read_back

KNOWN = properties_of(InstanceGroup) | {"EnvironmentConfig", "InstanceStorageConfigs", "SlurmConfig"}
STRATEGIES = ("WhenIdle", "WhenAllIdle")
NOT_OWN = {"execution_role_arn": None, "life_cycle_config": None}
"""As for the other groups."""


def instance_group(
    group: Mapping[str, Any], *, imported: Draft, lustre: bool, own: Mapping[str, Any]
) -> dict[str, Any]:
    """
    ``cluster.instance_groups`` item.

    Args:
        group: As in the request.
        imported: Receives notes on unsupported settings.
        lustre: True if groups mount a Lustre file system.
        own: Settings that differ from other groups: role, lifecycle.
    """
    path = f"cluster.instance_groups.{group['InstanceGroupName']}"
    _leftover(group, KNOWN, path, imported)
    storage = group.get("InstanceStorageConfigs") or []
    mounted = any("FsxLustreConfig" in config for config in storage)
    patch = group.get("AutoPatchConfig")
    update = group.get("ScheduledUpdateConfig") or {}
    _leftover(update, properties_of(ScheduledUpdate), f"{path}.scheduled_update", imported)
    found = read_back(InstanceGroup, group) | {
        "capacity": _capacity(group.get("CapacityRequirements") or {}),
        **_volumes(storage, path, imported),
        "mount_lustre": False if lustre and not mounted else None,
        "deep_health_checks": _checks(group, path, imported),
        "image_id": _image(group, path, imported),
        "auto_patch": None if patch is None else _auto_patch(patch, path, imported),
        "slurm": _slurm(group, path, imported),
    }
    return of_model(InstanceGroup, {**found, **NOT_OWN, **own})


def restricted_group(group: Mapping[str, Any], *, imported: Draft, own: Mapping[str, Any]) -> dict[str, Any]:
    """``cluster.restricted_instance_groups`` item; ``own`` are settings that differ from other groups."""
    path = f"cluster.restricted_instance_groups.{group['InstanceGroupName']}"
    _leftover(group, KNOWN - {"ScheduledUpdateConfig"}, path, imported)
    environment = group.get("EnvironmentConfig") or {}
    if environment.get("S3OutputPath"):
        imported.note(path, f"its output went to {environment['S3OutputPath']}; the service chooses another place")
    volumes = _volumes(group.get("InstanceStorageConfigs") or [], path, imported)
    found = read_back(RestrictedInstanceGroup, group) | {
        "volume_gib": volumes.get("volume_gib"),
        "deep_health_checks": _checks(group, path, imported),
    }
    return of_model(RestrictedInstanceGroup, {**found, **NOT_OWN, **own})


def _checks(group: Mapping[str, Any], path: str, imported: Draft) -> list[str] | None:
    """MultiNodeTrainingValidation is in the API and not in CloudFormation's resource schema."""
    checks = list(group.get("OnStartDeepHealthChecks") or ())
    if "MultiNodeTrainingValidation" in checks:
        imported.note(path, "the deep health check MultiNodeTrainingValidation is left out: CloudFormation refuses it")
    return [check for check in checks if check != "MultiNodeTrainingValidation"] or None


def _volumes(storage: list[Mapping[str, Any]], path: str, imported: Draft) -> dict[str, Any]:
    volumes = [config["EbsVolumeConfig"] for config in storage if "EbsVolumeConfig" in config]
    extra = [volume for volume in volumes if not volume.get("RootVolume")]
    root: Mapping[str, Any] = next((volume for volume in volumes if volume.get("RootVolume")), {})
    for volume in extra[1:]:
        size = f"{volume.get('VolumeSizeInGB', 'unknown')} GiB"
        imported.note(path, f"a second extra volume of {size} is left out: there can be one", decide=True)
    first: Mapping[str, Any] = extra[0] if extra else {}
    return {
        "volume_gib": first.get("VolumeSizeInGB"),
        "volume_kms_key": first.get("VolumeKmsKeyId"),
        "root_volume_kms_key": root.get("VolumeKmsKeyId"),
    }


def _image(group: Mapping[str, Any], path: str, imported: Draft) -> str | None:
    version, image = group.get("ImageReleaseVersion"), group.get("ImageId")
    if version is not None:
        if image is not None:
            imported.note(f"{path}.image_release_version", f"is AMI {image} here")
        return None
    if image not in (None, "default"):
        imported.note(f"{path}.image_id", "the AMI that runs now; take it out to have HyperPod's newest")
    return image


def _capacity(requirements: Mapping[str, Any]) -> str | None:
    if "Spot" in requirements:
        return "spot"
    return "on-demand" if "OnDemand" in requirements else None


def _auto_patch(config: Mapping[str, Any], path: str, imported: Draft) -> dict[str, Any] | None:
    strategy = config["PatchingStrategy"]
    if strategy not in STRATEGIES:
        imported.note(path, f"auto-patching by {strategy} is left out: CloudFormation cannot set it", decide=True)
        return None
    _leftover(config, {"PatchingStrategy", "PatchSchedule", "DeploymentConfig"}, f"{path}.auto_patch", imported)
    if config.get("PatchSchedule"):
        imported.note(f"{path}.auto_patch", "when the next patch is applied is left to the service")
    if config.get("DeploymentConfig"):
        imported.note(f"{path}.auto_patch", f"the deployment settings are left out: {strategy} does not use them")
    return {"strategy": strategy}


def _slurm(group: Mapping[str, Any], path: str, imported: Draft) -> dict[str, Any] | None:
    config = group.get("SlurmConfig")
    if not config:
        return None
    partitions = config.get("PartitionNames") or []
    for partition in partitions[1:]:
        imported.note(f"{path}.slurm.partition", f"partition {partition} is left out: a group is in one", decide=True)
    return _compact(node_type=config["NodeType"], partition=partitions[0] if partitions else None)


def _leftover(value: Mapping[str, Any], known: frozenset[str] | set[str], path: str, imported: Draft) -> None:
    for key in sorted(set(value) - known):
        imported.leave_out(path, key, value[key])


def _compact(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
