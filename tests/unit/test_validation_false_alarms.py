"""What AWS accepts and a rule beside it might report; the mistake itself is the example of that rule."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.validation.pages import Example, findings_of

CLUSTER = "Resources.Cluster"
WORKERS = "cluster.instance_groups.1"
ORDER = ["NodesRoutesOfSubnet", "FromNodes", "ToNodes", "NodesRoute"]
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p5"

ACCEPTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nodes with a NAT route do not wait for the gateway endpoint": (
        "HF041",
        "slurm.template.json",
        {f"{CLUSTER}.DependsOn": ORDER},
    ),
    "EKS has installed its own network plugin": (
        "HF048",
        "eks.template.json",
        {f"{CLUSTER}.DependsOn": [*ORDER, "S3", "Charts", "NodesEntry"]},
    ),
    "a transit gateway is a way out for security groups": (
        "HF206",
        "slurm.template.json",
        {
            "Resources.NodesRoute.Properties.NatGatewayId": None,
            "Resources.NodesRoute.Properties.TransitGatewayId": "tgw-1",
        },
    ),
    "a transit gateway is a way out to S3": (
        "HF211",
        "slurm.template.json",
        {
            "Resources.NodesRoute.Properties.NatGatewayId": None,
            "Resources.NodesRoute.Properties.TransitGatewayId": "tgw-1",
            "Resources.S3": None,
            f"{CLUSTER}.DependsOn": ORDER,
        },
    ),
    "the policy of the network plugin allows the tags": (
        "HF544",
        "slurm.template.json",
        {
            "Resources.Role.Properties.Policies.0.PolicyDocument.Statement.1": None,
            "Resources.Role.Properties.ManagedPolicyArns": [
                "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy",
                "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
            ],
        },
    ),
    "a training plan has the nodes that were bought": (
        "HF721",
        "slurm.yaml",
        {f"{WORKERS}.spare_count": 0, f"{WORKERS}.training_plan_arn": PLAN},
    ),
    "a minimum of all nodes": ("HF723", "eks.yaml", {f"{WORKERS}.min_instance_count": 17}),
    "a size whose family is in the region": ("HF032", "slurm.yaml", {f"{WORKERS}.instance_type": "ml.trn2.48xlarge"}),
    "a type in a Local Zone": (
        "HF032",
        "slurm.yaml",
        {f"{WORKERS}.instance_type": "ml.p6e-gb200.36xlarge", "network.availability_zone": "us-west-2-phx-2a"},
    ),
    "the name of a Local Zone": (
        "HF210",
        "slurm.template.json",
        {"Resources.NodesSubnet.Properties.AvailabilityZone": "us-west-2-phx-2a"},
    ),
    "the name of a Wavelength Zone": ("HF004", "slurm.yaml", {"network.availability_zone": "us-west-2-wl1-sea-wlz-1"}),
}


@pytest.mark.parametrize(("code", "base", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_aws_accepts_is_no_finding(code: str, base: str, changes: dict[str, Any], tmp_path: Path) -> None:
    found = findings_of(Example(base=base, changes=changes), folder=tmp_path)

    assert [one for one in found if one.code == code and one.severity != "not-checked"] == []


def test_what_no_list_names_is_not_checked(tmp_path: Path) -> None:
    changes = {f"{WORKERS}.instance_type": "ml.trn2.48xlarge"}

    found = findings_of(Example(base="slurm.yaml", changes=changes), folder=tmp_path)

    assert {one.severity for one in found if one.code == "HF032"} == {"not-checked"}


def test_a_cluster_after_an_add_on_that_waits_for_its_nodes_is_a_circle(tmp_path: Path) -> None:
    changes = {
        "Resources.CertManager.DependsOn": [],
        f"{CLUSTER}.DependsOn": [*ORDER, "S3", "Charts", "VpcCni", "CertManager"],
    }

    found = findings_of(Example(base="eks.template.json", changes=changes), folder=tmp_path)

    message = next(one.message for one in found if one.code == "HF045")
    assert "Cluster after CertManager, whose pods wait for nodes" in message


def test_a_setting_that_is_missing_is_named_as_what_to_add(tmp_path: Path) -> None:
    existing = {"vpc_id": "vpc-1", "subnet_id": "subnet-1", "security_group_id": "sg-1", "vpc_cidr": "10.1.0.0/16"}
    changes = {"network": {"availability_zone": "us-west-2a", "existing": existing}}

    found = findings_of(Example(base="slurm.yaml", changes=changes), folder=tmp_path)

    fixes = {one.code: one.fix for one in found if one.severity == "not-checked"}
    assert fixes["HF215"] == "add subnet_cidr to the file"
    assert "add subnet_id to the file" not in fixes.values(), "it is there, and only AWS knows more"
