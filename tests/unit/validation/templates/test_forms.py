"""Forms of values that functions put together: judged as far as they are known, and never refused for what is open."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.validation.from_template import check_template

ARN = "arn:${AWS::Partition}:eks:${AWS::Region}:${AWS::AccountId}:"
PARAMETERS = {
    "Anything": {"Type": "String"},
    "Name": {"Type": "String", "Default": "training"},
    "Subnets": {"Type": "CommaDelimitedList", "Default": "subnet-0a1b2c3d,subnet-1a1b2c3d"},
}


def codes(path: Path, resources: dict[str, Any]) -> list[str]:
    file = path / "template.json"
    file.write_text(json.dumps({"Parameters": PARAMETERS, "Resources": resources}))
    findings = check_template(file, linted=False).findings
    return [each.code for each in findings if each.code in ("HF058", "HF059") and each.severity == "error"]


def cluster(arn: Any) -> dict[str, Any]:
    group = {"InstanceGroupName": "a", "InstanceType": "ml.m5.large", "InstanceCount": 1}
    properties = {"InstanceGroups": [group], "Orchestrator": {"Eks": {"ClusterArn": arn}}}
    return {"Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}}


def test_nodes_take_no_service_linked_role(tmp_path: Path) -> None:
    right = cluster({"Fn::Sub": f"{ARN}cluster/${{Name}}"})
    group = right["Cluster"]["Properties"]["InstanceGroups"][0]
    group["ExecutionRole"] = "arn:aws:iam::111122223333:role/nodes/HyperPodNodes"
    assert codes(tmp_path, right) == []

    group["ExecutionRole"] = "arn:aws:iam::111122223333:role/aws-service-role/sagemaker.amazonaws.com/Linked"
    assert codes(tmp_path, right) == ["HF058"]


@pytest.mark.parametrize(
    "arn",
    [
        {"Fn::Sub": f"{ARN}cluster:${{Name}}"},
        {"Fn::Sub": f"{ARN}nodegroup/${{Name}}"},
        {"Fn::Sub": f"{ARN}cluster:${{Anything}}"},
        {"Fn::Join": [":", ["arn:aws:ecs", {"Ref": "AWS::Region"}, {"Ref": "AWS::AccountId"}, "cluster/a"]]},
    ],
)
def test_an_arn_of_another_form_is_refused_whatever_the_account_and_region(arn: Any, tmp_path: Path) -> None:
    assert codes(tmp_path, cluster(arn)) == ["HF058"]


@pytest.mark.parametrize(
    "arn",
    [
        {"Fn::Sub": f"{ARN}cluster/${{Name}}"},
        {"Fn::Sub": f"{ARN}cluster/${{Anything}}"},
        {"Fn::Sub": f"{ARN}${{Anything}}/a"},
        {"Fn::Sub": "arn:aws:eks:${Anything}:${AWS::AccountId}:cluster/a"},
        {"Ref": "Anything"},
        {"Fn::ImportValue": "cluster"},
        {"Fn::Sub": ["${Arn}", {"Arn": {"Fn::ImportValue": "cluster"}}]},
    ],
)
def test_what_stays_open_is_not_refused(arn: Any, tmp_path: Path) -> None:
    assert codes(tmp_path, cluster(arn)) == []


@pytest.mark.parametrize(("index", "expected"), [(1, []), (2, ["HF059"])])
def test_an_entry_behind_the_end_of_a_list_is_refused(index: int, expected: list[str], tmp_path: Path) -> None:
    subnet = {"SubnetId": {"Fn::Select": [index, {"Ref": "Subnets"}]}, "RouteTableId": "rtb-0a1b2c3d"}
    association = {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": subnet}

    assert codes(tmp_path, {"Association": association}) == expected


def test_a_list_of_unknown_length_has_any_entry(tmp_path: Path) -> None:
    subnet = {"SubnetId": {"Fn::Select": [7, {"Ref": "Anything"}]}, "RouteTableId": "rtb-0a1b2c3d"}
    association = {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": subnet}

    assert codes(tmp_path, {"Association": association}) == []
