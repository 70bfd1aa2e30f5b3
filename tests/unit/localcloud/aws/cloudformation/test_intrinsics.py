"""What template values turn into."""

from typing import Any

import pytest

from holdfast.localcloud.aws.cloudformation.template import TemplateError, TemplateScope, failed_rules

ATTRIBUTES = {("Bucket", "Arn"): "arn:aws:s3:::b", ("Bucket", "Site.Url"): "http://b"}


def scope(**changed: Any) -> TemplateScope:
    given: dict[str, Any] = {
        "pseudo": {"AWS::Region": "us-west-2", "AWS::AccountId": "123456789012", "AWS::Partition": "aws"},
        "parameters": {"Size": "3", "Names": ["a", "b"]},
        "mappings": {"Map": {"us-west-2": {"Ami": "ami-1"}}},
        "conditions": {
            "Yes": {"Fn::Equals": ["a", "a"]},
            "No": {"Fn::Not": [{"Condition": "Yes"}]},
            "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
            "Either": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]},
            "Big": {"Fn::Equals": [{"Ref": "Size"}, 3]},
        },
        "reference": lambda name: {"Bucket": "b"}[name],
        "attribute": lambda name, key: ATTRIBUTES[name, key],
        "imported": lambda name: f"imported-{name}",
        "dynamic": lambda service, name: f"{service}={name}",
        "zones": lambda: ["us-west-2a", "us-west-2b"],
    }
    return TemplateScope(**(given | changed))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ({"Ref": "Size"}, "3"),
        ({"Ref": "Bucket"}, "b"),
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "arn:aws:s3:::b"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "arn:aws:s3:::b"),
        ({"Fn::GetAtt": ["Bucket", "Site.Url"]}, "http://b"),
        ({"Fn::Sub": "${Bucket}-${Bucket.Arn}-${AWS::Region}-${!Literal}"}, "b-arn:aws:s3:::b-us-west-2-${Literal}"),
        ({"Fn::Sub": ["${X}/${Bucket}", {"X": {"Ref": "Size"}}]}, "3/b"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Bucket"}, 1, True]]}, "a-b-1-true"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::Select": ["1", {"Ref": "Names"}]}, "b"),
        ({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "us-west-2a"),
        ({"Fn::Split": ["|", "a|b"]}, ["a", "b"]),
        ({"Fn::FindInMap": ["Map", {"Ref": "AWS::Region"}, "Ami"]}, "ami-1"),
        ({"Fn::FindInMap": ["Map", "nowhere", "Ami", {"DefaultValue": "ami-0"}]}, "ami-0"),
        ({"Fn::If": ["Yes", "x", "y"]}, "x"),
        ({"Fn::If": ["No", "x", "y"]}, "y"),
        ({"a": {"Fn::If": ["No", "x", {"Ref": "AWS::NoValue"}]}, "b": 1}, {"b": 1}),
        (["a", {"Ref": "AWS::NoValue"}], ["a"]),
        ({"Fn::Base64": "hi"}, "aGk="),
        ({"Fn::Cidr": ["10.0.0.0/16", 2, 8]}, ["10.0.0.0/24", "10.0.1.0/24"]),
        ({"Fn::ImportValue": {"Fn::Sub": "${Size}-vpc"}}, "imported-3-vpc"),
        ({"Fn::Contains": [["1", "2"], "2"]}, True),
        ("x {{resolve:ssm:/p/q:3}} y", "x ssm=/p/q:3 y"),
        (
            {"Statement": [{"Condition": {"Bool": {"x": "y"}}, "Resource": {"Ref": "Bucket"}}]},
            {"Statement": [{"Condition": {"Bool": {"x": "y"}}, "Resource": "b"}]},
        ),
    ],
)
def test_a_value_resolves(value: Any, expected: Any) -> None:
    assert scope().resolve(value) == expected


@pytest.mark.parametrize(
    ("name", "holds"), [("Yes", True), ("No", False), ("Both", False), ("Either", True), ("Big", True)]
)
def test_a_condition_holds_or_not(name: str, holds: bool) -> None:
    assert scope().holds(name) is holds


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Select": [2, ["a"]]}, "Fn::Select cannot select nonexistent value at index 2"),
        ({"Fn::FindInMap": ["Map", "x", "Ami"]}, "Unable to get mapping for Map::x::Ami"),
        ({"Fn::Sub": "${Names}"}, "every value of Fn::Sub must be a string"),
        ({"Fn::Transform": {}}, "Fn::Transform is not supported"),
        ({"Fn::Join": ["-"]}, "Fn::Join object requires two parameters"),
        ({"Fn::If": ["Nowhere", 1, 2]}, "condition Nowhere is not defined"),
        ({"Fn::GetAZs": "eu-west-1"}, "the embedded AWS has one region, us-west-2"),
    ],
)
def test_rejects_a_value_that_cannot_be(value: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message.replace("(", r"\(")):
        scope().resolve(value)


def test_a_rule_that_fails_says_why() -> None:
    rules = {
        "CheckBootstrapVersion": {
            "Assertions": [
                {
                    "Assert": {"Fn::Not": [{"Fn::Contains": [["1", "2"], {"Ref": "Version"}]}]},
                    "AssertDescription": "too old",
                }
            ]
        },
    }

    assert failed_rules(rules, scope(parameters={"Version": "2"})) == ["too old"]
    assert failed_rules(rules, scope(parameters={"Version": "31"})) == []
