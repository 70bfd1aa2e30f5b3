"""Environments as a user writes them with the pages beside him, on the embedded AWS."""

import copy
from collections.abc import Callable, Iterator
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


def older_image(document: dict[str, Any]) -> dict[str, str]:
    document["cluster"]["instance_groups"][1]["image_release_version"] = "0.9.0"
    return {"cluster.instance_groups.workers.image_release_version": "rolling"}


def one_team(document: dict[str, Any]) -> dict[str, str]:
    document["eks"]["task_governance"]["teams"].pop()
    return {"eks.task_governance.teams.vision": "in place"}


BEFORE: dict[str, Callable[[dict[str, Any]], dict[str, str]]] = {"ami-upgrade": older_image, "two-teams": one_team}
"""Stacks that are deployed before some files, as their users had it; each returns what `holdfast diff` names then."""


def changes(before: dict[str, Any], after: dict[str, Any], folder: Path) -> dict[str, str]:
    environments = []
    for number, document in enumerate((before, after)):
        file = folder / f"{number}.yaml"
        file.write_text(yaml.safe_dump(document))
        environments.append(load(file))
    deployed, desired = environments
    return {change.path: change.effect.words for change in compare(deployed.model_dump(mode="json"), desired)}


def asked(found: dict[str, Any]) -> dict[str, tuple[int, str | None]]:
    """Nodes and release of each group."""
    return {
        group["name"]: (group["instance_count"] + group.get("spare_count", 0), group.get("image_release_version"))
        for group in found["cluster"]["instance_groups"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_written_from_the_pages_is_deployed_changed_and_deleted(
    name: str, home: Cloud, tmp_path: Path
) -> None:
    found, cloud = written(name, home)
    before = copy.deepcopy(found)
    expected = BEFORE[name](before) if name in BEFORE else {}
    stack, template = synthesise(before, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    assert changes(before, found, tmp_path) == expected
    if expected:
        _, changed = synthesise(found, cloud, tmp_path)
        assert cloud.update(stack, changed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)

    sagemaker = cloud.of("sagemaker")
    groups = sagemaker.describe_cluster(ClusterName=found["name"])["InstanceGroups"]
    assert asked(found) == {
        group["InstanceGroupName"]: (group["TargetCount"], group.get("DesiredImageReleaseVersion")) for group in groups
    }
    teams = found.get("eks", {}).get("task_governance", {}).get("teams", ())
    quotas = sagemaker.list_compute_quotas()["ComputeQuotaSummaries"]
    assert {quota["ComputeQuotaTarget"]["TeamName"] for quota in quotas} == {team["name"] for team in teams}
    assert cloud.delete(stack)["StackStatus"] == "DELETE_COMPLETE"
