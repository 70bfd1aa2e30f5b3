"""An environment file is judged by the properties that its template has."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.catalog import CLUSTER, EKS_CLUSTER, FILE_SYSTEM, QUOTA, SCHEDULER
from holdfast.config.reading import read
from holdfast.validation.from_environment import resources_in

ROOT = Path(__file__).parents[3]
ENVIRONMENTS = sorted((ROOT / "environments").glob("*.yaml"))
SNAPSHOTS = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
WIRING = {
    "ClusterArn",
    "ClusterRole",
    "DnsName",
    "Endpoint",
    "ExecutionRole",
    "KmsKeyId",
    "LogConfiguration",
    "MountName",
    "Orchestrator.Eks",
    "RoleArn",
    "SecretArn",
    "SecurityGroupIds",
    "SourceS3Uri",
    "SubnetIds",
    "Tags",
    "VpcConfig",
}
"""Ids and tokens, which constructs add; tags beside those of the file."""
OF_CONSTRUCTS = {
    "AutomaticBackupRetentionDays",
    "CopyTagsToBackups",
    "CopyTagsToVolumes",
    "EncryptionConfig",
    "Logging",
    "Options",
    "RootVolumeConfiguration",
}
"""The same in all environments, or keys: no rule reads them."""


def deployed(path: Path, kind: str) -> list[dict[str, Any]]:
    snapshot = SNAPSHOTS / f"test_the_template_is_what_was_reviewed[{path.stem}].json"
    resources = json.loads(snapshot.read_text())["Resources"].values()
    return [each["Properties"] for each in resources if each["Type"] == kind]


def judged(path: Path, kind: str) -> list[dict[str, Any]]:
    resources = resources_in(read(path), folder=path.parent).values()
    return [each["Properties"] for each in resources if each["Type"] == kind and each["Properties"]]


def without_wiring(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        places = {key: f"{name}.{key}" if name == "Orchestrator" else key for key in value}
        left_out = WIRING | OF_CONSTRUCTS
        return {key: without_wiring(each, key) for key, each in value.items() if places[key] not in left_out}
    if name == "Subnets":
        return [each for each in value if str(each).startswith("subnet-")]  # others are made here, and are tokens there
    return [without_wiring(each) for each in value] if isinstance(value, list) else value


def by_name(properties: dict[str, Any]) -> tuple[str, str]:
    return str(properties.get("FileSystemType")), str(properties.get("Name"))


@pytest.mark.parametrize("kind", [CLUSTER, EKS_CLUSTER, FILE_SYSTEM, SCHEDULER, QUOTA])
@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_properties_that_are_judged_are_those_of_the_template(path: Path, kind: str) -> None:
    here, there = (without_wiring(sorted(each, key=by_name)) for each in (judged(path, kind), deployed(path, kind)))

    assert here == there


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_tags_of_a_file_are_tags_of_its_cluster(path: Path) -> None:
    (here,), (there,) = judged(path, CLUSTER), deployed(path, CLUSTER)

    assert all(tag in there["Tags"] for tag in here.get("Tags", ()))
