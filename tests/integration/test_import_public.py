"""
Configurations that others published are deployed beside the things that they name, and are what they asked for.

tests/unit/importing/test_public.py says where their files are looked for; without them all of this is skipped.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from embedded_stack import Cloud, deploy
from named_things import NamedThings
from public_configurations import FOLDER, PublicConfiguration, fetched, public_configurations

from holdfast.config import Environment
from holdfast.importing import from_samples, render
from holdfast.importing.files import cluster_of
from holdfast.localcloud.aws import serve
from holdfast.validation.imports import request_of

ROWS = [row for row in public_configurations() if row.refused is None and not row.errors]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """One for each: an account holds no more than ten resource policies of CloudWatch Logs."""
    with serve(home=tmp_path / "cloud", hyperpod="simulated") as running:
        cloud = Cloud(running)
        yield cloud
        cloud.close()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_public_configuration_is_deployed_beside_what_it_names(
    row: PublicConfiguration, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    paths = fetched(row, folder)
    if paths is None:
        pytest.skip(f"{FOLDER} names no folder with the files of {row.repository}")
    cloud: Cloud = request.getfixturevalue("cloud")
    NamedThings(cloud, block=10 + ROWS.index(row)).write(paths)
    given = cluster_of(files=paths, name=row.name)
    imported = from_samples(given.request, given.provisioning, region="us-west-2")
    name = f"row-{ROWS.index(row)}"
    document = yaml.safe_load(render(imported, origin=row.id))
    document["cluster"].pop("name", None)

    environment = Environment.model_validate({**document, "name": name})
    deploy(cloud, environment, outdir=tmp_path / "assembly")
    made = request_of(cloud.client("sagemaker").describe_cluster(ClusterName=name))

    assert differences(given.request, made, row) == []


def differences(wanted: dict[str, Any], made: dict[str, Any], row: PublicConfiguration) -> list[str]:
    """Members of the request that are not as asked for, but for those that a person was asked about."""
    found = [
        member
        for member in ("VpcConfig", "NodeRecovery", "NodeProvisioningMode", "ClusterRole")
        if member in wanted and wanted[member] != made.get(member)
    ]
    if "Eks" in wanted.get("Orchestrator", {}) and wanted["Orchestrator"] != made["Orchestrator"]:
        found.append("Orchestrator")
    for asked, given in zip(wanted["InstanceGroups"], made["InstanceGroups"], strict=True):
        name = asked["InstanceGroupName"]
        questions = " ".join(row.questions.values())
        for member, value in asked.items():
            if member in questions:
                continue
            if member == "InstanceStorageConfigs":  # beside what provisioning_parameters.json mounts
                found += [f"{name}.{each}" for each in value if each not in given[member]]
            elif _told(value) != _told(given.get(member)):
                found.append(f"{name}.{member}")
    return found


def _told(value: Any) -> Any:
    """A place in S3 without the slash at its end."""
    if isinstance(value, dict) and "SourceS3Uri" in value:
        return {**value, "SourceS3Uri": value["SourceS3Uri"].rstrip("/")}
    return value
