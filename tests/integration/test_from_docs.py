"""Environments as a user writes them with the pages beside him, on the embedded AWS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import ACCOUNT, ROOT, Cloud, synthesise
from existing_things import ExistingThings

from holdfast.localcloud.aws import serve

pytestmark = pytest.mark.e2e
FOLDER = ROOT / "tests/cases/from_docs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context(), serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as aws:
        cloud = Cloud(aws.client_arguments, home=aws.home)
        yield cloud
        cloud.close()


def written(name: str, home: Cloud) -> tuple[dict[str, Any], Cloud]:
    """The file of a user, with the ids that his network has on the embedded AWS."""
    text = (FOLDER / f"{name}.yaml").read_text().replace("111122223333", ACCOUNT)
    cloud = home.at(yaml.safe_load(text)["region"])
    network = cloud.network()
    subnets = (network["subnet_id"], *network["control_plane_subnet_ids"])
    for number, subnet in enumerate(subnets):
        text = text.replace(f"subnet-0123456789abcdef{number}", str(subnet))
    for of, own in (("vpc", "vpc_id"), ("sg", "security_group_id")):
        text = text.replace(f"{of}-0123456789abcdef0", str(network[own]))
    found = yaml.safe_load(text) | {"cloud": "embedded"}
    found["storage"]["on_delete"] = "Delete"
    if "existing" in found["network"]:
        ExistingThings(cloud.of, network).make(found)
    return found, cloud


def groups_of(cloud: Cloud, name: str) -> dict[str, dict[str, Any]]:
    described = cloud.of("sagemaker").describe_cluster(ClusterName=name)
    return {group["InstanceGroupName"]: group for group in described["InstanceGroups"]}


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_written_from_the_pages_is_deployed_and_deleted(name: str, home: Cloud, tmp_path: Path) -> None:
    found, cloud = written(name, home)
    stack, template = synthesise(found, cloud, tmp_path)

    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    asked = {
        group["name"]: group["instance_count"] + group.get("spare_count", 0)
        for group in found["cluster"]["instance_groups"]
    }
    assert {name: group["TargetCount"] for name, group in groups_of(cloud, found["name"]).items()} == asked
    assert cloud.delete(stack)["StackStatus"] == "DELETE_COMPLETE"
