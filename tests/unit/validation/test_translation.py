"""An environment file is judged by the properties that its template has."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.config.reading import read
from holdfast.validation.from_environment import resources_in

ROOT = Path(__file__).parents[3]
ENVIRONMENTS = sorted((ROOT / "environments").glob("*.yaml"))
SNAPSHOTS = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
WIRING = {
    "ClusterRole",
    "DnsName",
    "Endpoint",
    "ExecutionRole",
    "MountName",
    "Orchestrator.Eks",
    "SecretArn",
    "SourceS3Uri",
    "Tags",
    "VpcConfig",
}
"""Ids and tokens, which constructs add; tags beside those of the file."""


def deployed(path: Path) -> dict[str, Any]:
    snapshot = SNAPSHOTS / f"test_the_template_is_what_was_reviewed[{path.stem}].json"
    resources = json.loads(snapshot.read_text())["Resources"].values()
    (cluster,) = (each for each in resources if each["Type"] == "AWS::SageMaker::Cluster")
    found: dict[str, Any] = cluster["Properties"]
    return found


def without_wiring(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        places = {key: f"{name}.{key}" if name == "Orchestrator" else key for key in value}
        return {key: without_wiring(each, key) for key, each in value.items() if places[key] not in WIRING}
    return [without_wiring(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_properties_of_a_cluster_are_those_of_its_template(path: Path) -> None:
    judged = resources_in(read(path), folder=path.parent)["Cluster"]["Properties"]

    assert without_wiring(judged) == without_wiring(deployed(path))


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_tags_of_a_file_are_tags_of_its_cluster(path: Path) -> None:
    judged = resources_in(read(path), folder=path.parent)["Cluster"]["Properties"]

    assert all(tag in deployed(path)["Tags"] for tag in judged.get("Tags", ()))
