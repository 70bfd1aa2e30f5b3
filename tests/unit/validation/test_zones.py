"""Zones by their names and by their ids, and Local and Wavelength Zones, in both forms."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.validation.from_environment import check
from holdfast.validation.from_template import check_template

HEAD = {"name": "head", "instance_type": "ml.m5.2xlarge", "instance_count": 1, "slurm": {"node_type": "Controller"}}
NODES = {"name": "nodes", "instance_type": "ml.p5.48xlarge", "instance_count": 2}
SLURM = {
    "cluster": {
        "node_provisioning_mode": "Continuous",
        "instance_groups": [HEAD, NODES | {"slurm": {"node_type": "Compute", "partition": "dev"}}],
    },
    "slurm": {"accounting": {"create": True}},
}
GROUP = "cluster.instance_groups.0"
EKS = {
    "cluster": {"instance_groups": [NODES]},
    "eks": {"kubernetes_version": "1.34", "admin_role_arns": ["arn:aws:iam::111122223333:role/Admin"]},
}


def found(folder: Path, orchestrator: dict[str, object], **zones: Any) -> list[tuple[str, str, str]]:
    """Codes, paths and fixes of errors, and of what is left unchecked without an account's reason."""
    file = folder / "zones.yaml"
    network = {"cidr": "10.0.0.0/16", **zones}
    document = {"name": "zones", "account": "111122223333", "region": "us-east-1", "network": network, **orchestrator}
    file.write_text(yaml.safe_dump(document))
    return [
        (each.code, each.path.removeprefix("network."), each.fix)
        for each in check(file).findings
        if not each.code.startswith("HF9")
    ]


def by_id(first: str, second: str) -> dict[str, str]:
    return {"availability_zone_id": first, "control_plane_availability_zone_id": second}


@pytest.mark.parametrize("orchestrator", [SLURM, EKS], ids=["slurm", "eks"])
def test_zones_by_their_ids_are_judged_and_not_left_unchecked(orchestrator: dict[str, object], tmp_path: Path) -> None:
    assert found(tmp_path, orchestrator, **by_id("use1-az4", "use1-az6")) == []


@pytest.mark.parametrize(
    ("orchestrator", "code", "fix"),
    [(SLURM, "HF220", "name a second zone"), (EKS, "HF317", "name another zone here")],
    ids=["slurm", "eks"],
)
def test_the_second_zone_is_another_one_by_name_and_by_id(
    orchestrator: dict[str, object], code: str, fix: str, tmp_path: Path
) -> None:
    second = "control_plane_availability_zone"
    assert found(tmp_path, orchestrator, **by_id("use1-az4", "use1-az4")) == [(code, f"{second}_id", fix)]
    named = {"availability_zone": "us-east-1a", second: "us-east-1a"}
    assert found(tmp_path, orchestrator, **named) == [(code, second, fix)]


@pytest.mark.parametrize("orchestrator", [SLURM, EKS], ids=["slurm", "eks"])
def test_both_ids_are_of_the_region(orchestrator: dict[str, object], tmp_path: Path) -> None:
    codes = [each[:2] for each in found(tmp_path, orchestrator, **by_id("usw2-az1", "usw2-az2"))]
    assert codes == [("HF085", "availability_zone_id"), ("HF085", "control_plane_availability_zone_id")]


@pytest.mark.parametrize(
    ("zones", "path", "instead"),
    [
        (by_id("use1-dfw2-az1", "use1-az4"), "availability_zone_id", "use1-az1"),
        (by_id("use1-az4", "use1-dfw2-az1"), "control_plane_availability_zone_id", "use1-az1"),
        (
            {"availability_zone": "us-east-1a", "control_plane_availability_zone": "us-east-1-dfw-2a"},
            "control_plane_availability_zone",
            "us-east-1a",
        ),
        (
            {"availability_zone": "us-east-1a", "control_plane_availability_zone": "us-east-1-wl1-bos-wlz-1"},
            "control_plane_availability_zone",
            "us-east-1a",
        ),
    ],
)
def test_the_control_plane_takes_no_local_and_no_wavelength_zone(
    zones: dict[str, str], path: str, instead: str, tmp_path: Path
) -> None:
    error, *unchecked = found(tmp_path, EKS, **zones)
    assert error == ("HF351", path, f"take a zone of the region such as {instead}")
    assert [each[:2] for each in unchecked] == [("HF037", path)]


@pytest.mark.parametrize("orchestrator", [SLURM, EKS], ids=["slurm", "eks"])
@pytest.mark.parametrize(
    ("zones", "path", "fix"),
    [
        ({"availability_zone": "us-east-1z"}, "availability_zone", "write us-east-1f"),
        ({"control_plane_availability_zone": "us-east-1m"}, "control_plane_availability_zone", "write us-east-1f"),
        ({"additional_availability_zones": ["us-east-1y"]}, "additional_availability_zones.0", "write us-east-1f"),
        (by_id("use1-az9", "use1-az4"), "availability_zone_id", "write use1-az6"),
        (by_id("use1-az4", "use1-az12"), "control_plane_availability_zone_id", "write use1-az6"),
        (by_id("use1-az0", "use1-az4"), "availability_zone_id", "write use1-az6"),
    ],
)
def test_a_zone_far_beyond_the_last_one_does_not_exist(
    orchestrator: dict[str, object], zones: dict[str, Any], path: str, fix: str, tmp_path: Path
) -> None:
    named = {"availability_zone": "us-east-1a", "control_plane_availability_zone": "us-east-1b"}
    given = zones if "availability_zone_id" in zones else named | zones
    assert found(tmp_path, orchestrator, **given) == [("HF037", path, fix)]


@pytest.mark.parametrize("first", ["us-east-1g", "us-east-1-dfw-2a", "us-east-1-xyz-1a"])
def test_a_zone_that_may_have_come_since_the_list_was_made_is_not_checked(first: str, tmp_path: Path) -> None:
    zones = {"availability_zone": first, "control_plane_availability_zone": "us-east-1b"}
    assert found(tmp_path, SLURM, **zones) == [("HF037", "availability_zone", "check it before deployment")]


@pytest.mark.parametrize(
    ("group", "further", "expected"),
    [
        ("us-east-1z", "us-east-1c", [("HF248", f"{GROUP}.availability_zone")]),
        ("us-east1c", "us-east-1c", [("HF004", f"{GROUP}.availability_zone")]),
        ("us-east-1c", "us-east1c", [("HF004", "additional_availability_zones.0")]),
    ],
)
def test_a_typo_in_the_zone_of_a_group_is_found_once_and_leaves_nothing_unchecked(
    group: str, further: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    placed = EKS | {"cluster": {"instance_groups": [NODES | {"availability_zone": group}]}}
    zones = {"availability_zone": "us-east-1a", "control_plane_availability_zone": "us-east-1b"}
    assert [each[:2] for each in found(tmp_path, placed, **zones, additional_availability_zones=[further])] == expected


def test_the_name_of_a_group_of_zones_is_none_of_a_zone(tmp_path: Path) -> None:
    zones = {"availability_zone": "us-east-1-dfw-2", "control_plane_availability_zone": "us-east-1a"}
    assert [each[:2] for each in found(tmp_path, SLURM, **zones)] == [("HF004", "availability_zone")]


def test_the_id_of_a_subnets_zone_is_of_the_templates_region(tmp_path: Path) -> None:
    subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24", "AvailabilityZoneId": "use1-az4"}
    vpc = {"CidrBlock": "10.0.0.0/16", "EnableDnsSupport": True, "EnableDnsHostnames": True}
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": vpc},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": subnet},
    }
    file = tmp_path / "template.yaml"
    file.write_text(yaml.safe_dump({"Resources": resources}))

    assert [each.code for each in check_template(file, region="us-west-2").findings] == ["HF085"]
    assert check_template(file, region="us-east-1").findings == []


def test_a_zone_behind_the_last_one_is_left_unchecked_with_that_reason(tmp_path: Path) -> None:
    file = tmp_path / "zones.yaml"
    network = {"cidr": "10.0.0.0/16", "availability_zone": "us-east-1g"}
    document = {"name": "zones", "account": "111122223333", "region": "us-east-1", "network": network, **SLURM}
    file.write_text(yaml.safe_dump(document))
    causes = [each.cause for each in check(file).findings if each.code == "HF037"]
    assert causes == ["us-east-1g is not in this version's list of zones"]
