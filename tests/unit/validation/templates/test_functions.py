"""Functions of CloudFormation: what they come to, where that can be known."""

from typing import Any

import pytest

from holdfast.validation import UNRESOLVED
from holdfast.validation.cloudformation import Graph, Intrinsics, Template

BODY: dict[str, Any] = {
    "Mappings": {"Types": {"us-west-2": {"size": "3"}}},
    "Resources": {"Vpc": {"Type": "AWS::EC2::VPC"}},
}
VALUES = {"Zones": ["a", "b"], "Block": "10.1.0.0/16", "Number": "2"}


def resolve(value: Any) -> object:
    template = Template(body=BODY, region="us-west-2", values=VALUES)
    return Intrinsics(Graph([template])).resolve(template, value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"Fn::Cidr": ["10.1.0.0/16", 3, 8]}, ["10.1.0.0/24", "10.1.1.0/24", "10.1.2.0/24"]),
        ({"Fn::Cidr": [{"Ref": "Block"}, {"Ref": "Number"}, "14"]}, ["10.1.0.0/18", "10.1.64.0/18"]),
        ({"Fn::Select": [1, {"Fn::Cidr": ["10.0.0.0/24", 2, 4]}]}, "10.0.0.16/28"),
        ({"Fn::Length": [1, 2, 3]}, 3),
        ({"Fn::Length": {"Ref": "Zones"}}, 2),
        ({"Fn::ToJsonString": {"a": [1, {"Ref": "Number"}]}}, '{"a":[1,"2"]}'),
        ({"Fn::Join": [",", {"Ref": "Zones"}]}, "a,b"),
        ({"Fn::Select": [0, {"Ref": "Zones"}]}, "a"),
        ({"Fn::Sub": "${Number}-${AWS::Region}"}, "2-us-west-2"),
        ({"Fn::FindInMap": ["Types", {"Ref": "AWS::Region"}, "size"]}, "3"),
        ({"Fn::FindInMap": ["Types", "nowhere", "size", {"DefaultValue": "1"}]}, "1"),
    ],
)
def test_what_arguments_decide_is_known(value: Any, plain: object) -> None:
    assert resolve(value) == plain


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Cidr": ["10.1.0.0/16", 300, 8]},
        {"Fn::Cidr": ["10.1.0.0/30", 3, 1]},
        {"Fn::Cidr": ["10.1.0.0/16", 1, 40]},
        {"Fn::Cidr": ["somewhere", 1, 8]},
        {"Fn::Cidr": [{"Fn::GetAtt": ["Vpc", "CidrBlock"]}, 1, 8]},
        {"Fn::Cidr": "10.1.0.0/16"},
        {"Fn::Length": "abc"},
        {"Fn::ToJsonString": {"a": {"Fn::GetAtt": ["Vpc", "VpcId"]}}},
        {"Fn::ToJsonString": "a"},
        {"Fn::FindInMap": ["Types", "nowhere", "size"]},
        {"Fn::FindInMap": ["Types", ["us-west-2"], "size"]},
        {"Fn::Alias": "a"},
    ],
)
def test_what_they_do_not_is_unresolved(value: Any) -> None:
    assert resolve(value) is UNRESOLVED
