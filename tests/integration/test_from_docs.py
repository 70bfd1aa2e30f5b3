"""Environments as a user writes them with the pages beside him, on the embedded AWS."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import ACCOUNT, ROOT, Cloud, synthesise
from existing_things import ExistingThings

from holdfast.config import load
from holdfast.localcloud.aws import serve
from holdfast.updates import compare

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
    subnets = (network["subnet_id"], *network["control_plane_subnet_ids"], another_zone(cloud, network))
    for number, subnet in enumerate(subnets):
        text = text.replace(f"subnet-0123456789abcdef{number}", str(subnet))
    for of, own in (("vpc", "vpc_id"), ("sg", "security_group_id")):
        text = text.replace(f"{of}-0123456789abcdef0", str(network[own]))
    found = yaml.safe_load(text) | {"cloud": "embedded"}
    found["storage"]["on_delete"] = "Delete"
    if "existing" in found["network"]:
        ExistingThings(cloud.of, network).make(found)
    return found, cloud


def another_zone(cloud: Cloud, network: dict[str, Any]) -> str:
    """A subnet of nodes beside that of the others."""
    ec2, zone = cloud.of("ec2"), f"{cloud.region}b"
    made = ec2.create_subnet(VpcId=network["vpc_id"], CidrBlock="10.1.132.0/22", AvailabilityZone=zone)
    ec2.associate_route_table(RouteTableId=network["route_table_id"], SubnetId=made["Subnet"]["SubnetId"])
    return str(made["Subnet"]["SubnetId"])


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


def changes(before: dict[str, Any], after: dict[str, Any], folder: Path) -> dict[str, str]:
    """What `holdfast diff` names, by setting."""
    files = []
    for number, document in enumerate((before, after)):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(yaml.safe_dump(document))
    return {change.path: change.effect.words for change in compare(*map(load, files))}


def test_a_newer_image_rolls_over_the_group_that_names_it(home: Cloud, tmp_path: Path) -> None:
    found, cloud = written("ami-upgrade", home)
    stack, template = synthesise(found, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    newer = copy.deepcopy(found)
    newer["cluster"]["instance_groups"][1]["image_release_version"] = "1.1.0"
    _, changed = synthesise(newer, cloud, tmp_path)

    setting = "cluster.instance_groups.workers.image_release_version"
    assert changes(found, newer, tmp_path) == {setting: "rolling"}
    assert cloud.update(stack, changed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)
    images = {name: group.get("DesiredImageReleaseVersion") for name, group in groups_of(cloud, found["name"]).items()}
    assert images["workers"] == "1.1.0"
    cloud.delete(stack)


def test_a_second_team_gets_a_quota_beside_the_first(home: Cloud, tmp_path: Path) -> None:
    found, cloud = written("two-teams", home)
    one = copy.deepcopy(found)
    teams = one["eks"]["task_governance"]["teams"]
    second = teams.pop()["name"]
    stack, template = synthesise(one, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    _, changed = synthesise(found, cloud, tmp_path)

    assert changes(one, found, tmp_path) == {f"eks.task_governance.teams.{second}": "in place"}
    assert cloud.update(stack, changed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)
    quotas = cloud.of("sagemaker").list_compute_quotas()["ComputeQuotaSummaries"]
    assert {quota["ComputeQuotaTarget"]["TeamName"] for quota in quotas} == {"language", "vision"}
    cloud.delete(stack)
