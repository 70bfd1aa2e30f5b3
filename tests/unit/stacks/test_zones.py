"""Groups in several zones of a VPC made here, as the stack's template has them."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk.assertions import Match, Template
from unlinted import unlinted

from holdfast.config import load
from holdfast_stacks import HyperPodStack

ENVIRONMENT = Path(__file__).parents[3] / "environments" / "slurm-p5.yaml"
ZONES = ["us-west-2b", "us-west-2c"]


def template(tmp_path: Path, *, zones: list[str], of: dict[str, str], **network: Any) -> Template:
    """The template of slurm-p5 with further zones, and with groups in zones."""
    document = yaml.safe_load(ENVIRONMENT.read_text())
    document["network"] |= network | ({"additional_availability_zones": zones} if zones else {})
    for group in document["cluster"]["instance_groups"]:
        if group["name"] in of:
            group["availability_zone"] = of[group["name"]]
    path = tmp_path / "zones.yaml"
    path.write_text(yaml.safe_dump(document))
    environment = load(path)
    app = cdk.App(analytics_reporting=False)
    stack = HyperPodStack(app, environment.stack_name, environment=environment, folder=ENVIRONMENT.parent)
    with unlinted():
        return Template.from_stack(stack)


@pytest.fixture(scope="module")
def workers_apart(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The workers in the second of three zones."""
    return template(tmp_path_factory.mktemp("zones"), zones=ZONES, of={"workers": "us-west-2b"})


def groups(found: Template) -> dict[str, dict[str, Any]]:
    (cluster,) = found.find_resources("AWS::SageMaker::Cluster").values()
    return {one["InstanceGroupName"]: one for one in cluster["Properties"]["InstanceGroups"]}


def resources(found: Template) -> dict[str, Any]:
    return dict(found.to_json()["Resources"])


def test_each_further_zone_has_a_private_subnet_with_ways_out_and_its_group_is_in_it(workers_apart: Template) -> None:
    found = workers_apart
    subnets = {
        one["Properties"]["CidrBlock"]: (name, one["Properties"]["AvailabilityZone"])
        for name, one in found.find_resources("AWS::EC2::Subnet").items()
        if one["Properties"]["AvailabilityZone"] in ZONES
    }
    assert sorted((block, zone) for block, (_, zone) in subnets.items()) == [
        ("10.1.160.0/19", "us-west-2b"),
        ("10.1.192.0/19", "us-west-2c"),
    ]
    subnet, _ = subnets["10.1.160.0/19"]
    placed = groups(found)
    assert placed["workers"]["OverrideVpcConfig"]["Subnets"] == [{"Ref": subnet}]
    assert [name for name, one in placed.items() if "OverrideVpcConfig" in one] == ["workers"]
    found.has_resource_properties(
        "AWS::EC2::Route", {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": Match.any_value()}
    )
    tables = [
        one["Properties"]["RouteTableId"]["Ref"]
        for one in found.find_resources("AWS::EC2::SubnetRouteTableAssociation").values()
        if one["Properties"]["SubnetId"] == {"Ref": subnet}
    ]
    endpoints = [
        table["Ref"]
        for one in found.find_resources("AWS::EC2::VPCEndpoint").values()
        for table in one["Properties"].get("RouteTableIds", ())
    ]
    assert set(tables) <= set(endpoints), "S3 is reached without the NAT gateway"
    (cluster,) = found.find_resources("AWS::SageMaker::Cluster").values()
    assert subnet in cluster["DependsOn"]


def test_a_further_zone_changes_no_resource_that_is_there(tmp_path: Path) -> None:
    before, after = resources(template(tmp_path, zones=[], of={})), resources(template(tmp_path, zones=ZONES, of={}))
    for one in (before, after):
        del one["ClusterEB0386A7"]["DependsOn"]  # which names the new ones, too
    assert {name: after[name] for name in before} == before
    assert {one["Type"] for name, one in after.items() if name not in before} == {
        "AWS::EC2::Subnet",
        "AWS::EC2::RouteTable",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::Route",
        "AWS::EC2::VPCEndpoint",
    }


def test_the_file_system_stays_in_the_first_zone(workers_apart: Template) -> None:
    (lustre,) = workers_apart.find_resources("AWS::FSx::FileSystem").values()
    (subnet,) = lustre["Properties"]["SubnetIds"]
    assert resources(workers_apart)[subnet["Ref"]]["Properties"]["AvailabilityZone"] == "us-west-2a"


def test_a_closed_network_has_no_way_out_in_a_further_zone_either(tmp_path: Path) -> None:
    found = template(tmp_path, zones=ZONES, of={"workers": "us-west-2b"}, egress="none")
    found.resource_count_is("AWS::EC2::NatGateway", 0)
    assert [
        one
        for one in found.find_resources("AWS::EC2::Route").values()
        if one["Properties"].get("DestinationCidrBlock") == "0.0.0.0/0"
    ] == []


@pytest.mark.parametrize("zone", ["us-west-2d"])
def test_a_zone_that_the_network_has_not_is_refused(tmp_path: Path, zone: str) -> None:
    with pytest.raises(ValueError, match="got availability_zone us-west-2d; allowed: us-west-2a, us-west-2b"):
        template(tmp_path, zones=ZONES[:1], of={"workers": zone})


def test_zones_of_the_network_are_different_and_not_more_than_the_block_has_room_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"at most 2, each once"):
        template(tmp_path, zones=["us-west-2a"], of={})
