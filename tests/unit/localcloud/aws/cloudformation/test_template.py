"""Reading templates and parameters, and refusing what cannot be deployed."""

import json
from typing import Any

import pytest

from holdfast.localcloud.aws.cloudformation.template import (
    TemplateError,
    capabilities,
    check,
    chosen,
    dependencies,
    described,
    parse,
    typed,
)

YAML = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Properties:
      BucketName: !Sub "${AWS::AccountId}-${Other.Arn}"
      Tags: [{Key: a, Value: !If [Big, !Ref Other, !GetAtt Other.Arn]}]
  Other:
    Type: AWS::S3::Bucket
    DependsOn: Third
  Third:
    Type: AWS::S3::Bucket
"""


def template(resources: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return parse(json.dumps({"Resources": resources, **sections}))


def test_yaml_with_short_tags_reads_like_json() -> None:
    document = parse(YAML)

    assert document["AWSTemplateFormatVersion"] == "2010-09-09"
    assert document["Resources"]["Bucket"]["Properties"] == {
        "BucketName": {"Fn::Sub": "${AWS::AccountId}-${Other.Arn}"},
        "Tags": [{"Key": "a", "Value": {"Fn::If": ["Big", {"Ref": "Other"}, {"Fn::GetAtt": ["Other", "Arn"]}]}}],
    }


def test_dependencies_are_references_and_depends_on() -> None:
    assert dependencies(parse(YAML)) == {"Bucket": {"Other"}, "Other": {"Third"}, "Third": set()}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({}, "At least one Resources member must be defined"),
        ({"A": {}}, r"\[/Resources/A/Type\] must be a string"),
        ({"A": {"Type": "AWS::No::Thing"}}, r"Unrecognized resource types: \[AWS::No::Thing\]"),
        (
            {"A": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Ref": "B"}}}},
            r"Unresolved resource dependencies \[B\] in the Resources block",
        ),
        ({"A": {"Type": "AWS::S3::Bucket", "DependsOn": ["B"]}}, r"Unresolved resource dependencies \[B\]"),
        (
            {"A": {"Type": "AWS::S3::Bucket", "DependsOn": "B"}, "B": {"Type": "AWS::S3::Bucket", "DependsOn": "A"}},
            r"Circular dependency between resources: \[A, B\]",
        ),
        ({"A": {"Type": "AWS::S3::Bucket", "Condition": "C"}}, "Condition C in resource A is not defined"),
    ],
)
def test_rejects_a_template_that_cannot_be_deployed(resources: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        check(template(resources), supports=lambda kind: kind == "AWS::S3::Bucket")


def test_rejects_text_that_is_no_template() -> None:
    with pytest.raises(TemplateError, match="not well-formed"):
        parse("{nope")
    with pytest.raises(TemplateError, match=r"Invalid template property or properties \[Nope\]"):
        parse('{"Nope": 1, "Resources": {}}')


def test_named_iam_resources_need_the_stronger_capability() -> None:
    assert capabilities(template({"A": {"Type": "AWS::IAM::Role", "Properties": {}}})) == ["CAPABILITY_IAM"]
    named = {"A": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "x"}}}
    assert capabilities(template(named)) == ["CAPABILITY_NAMED_IAM"]


PARAMETERS = {
    "Size": {"Type": "Number", "Default": 3, "MaxValue": 5},
    "Names": {"Type": "CommaDelimitedList", "Default": "a, b"},
    "Kind": {"Type": "String", "AllowedValues": ["x", "y"], "Default": "x"},
    "Secret": {"Type": "String", "NoEcho": True, "Default": "s"},
}


def with_parameters() -> dict[str, Any]:
    return template({"A": {"Type": "AWS::S3::Bucket"}}, Parameters=PARAMETERS)


def given(**values: str) -> list[dict[str, Any]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]


def test_parameters_take_given_previous_and_default_values() -> None:
    document = with_parameters()
    kept = [{"ParameterKey": "Kind", "UsePreviousValue": True}, *given(Size="4")]

    values = chosen(document, kept, {"Kind": "y"})

    assert values == {"Kind": "y", "Size": "4", "Names": "a, b", "Secret": "s"}
    assert typed(document, values, {})["Names"] == ["a", "b"]
    assert {"ParameterKey": "Secret", "ParameterValue": "****"} in described(document, values, {})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Size": "6"}, "must be a number between any and 5, got 6"),
        ({"Size": "x"}, "Parameter 'Size' must be a number"),
        ({"Kind": "z"}, r"must be one of AllowedValues: \[x, y\], got 'z'"),
        ({"Other": "z"}, r"Parameters: \[Other\] do not exist in the template"),
    ],
)
def test_rejects_parameter_values_that_the_template_does_not_allow(values: dict[str, str], message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        chosen(with_parameters(), given(**values), None)


def bomb(levels: int = 40) -> str:
    """Each list holds the one before it ten times."""
    lines = ["Metadata:", "  a0: &a0 [x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, "Resources:", "  A: {Type: AWS::SNS::Topic}"])


@pytest.mark.parametrize("body", [bomb(), "A: &a\n  b: *a", "A: &a {b: 1}\nB:\n  <<: *a", "&a [*a]"])
def test_aliases_are_refused_as_cloudformation_refuses_them(body: str) -> None:
    with pytest.raises(TemplateError, match="Template error: YAML aliases are not allowed"):
        parse(body)


@pytest.mark.parametrize(
    "body",
    [
        "{" + '"a":{' * 100_000,
        '{"a":' + "[" * 100_000,
        '{"Resources":' * 300 + "1" + "}" * 300,
        "[" * 100_000,
        "a: " + "[" * 300 + "]" * 300,
        "\n".join(" " * n + "a:" for n in range(300)),
    ],
)
def test_what_is_nested_without_end_is_no_template(body: str) -> None:
    with pytest.raises(TemplateError, match="Template format error"):
        parse(body)


def test_a_template_has_a_largest_size() -> None:
    with pytest.raises(TemplateError, match="Template may not exceed 1000000 bytes in size"):
        parse("a" * 1_000_001)


@pytest.mark.parametrize("body", ["? [a]\n: 1", "!!python/object:os.system {}", "{1: 2, a}", "\x00", "!Sub {a: [}"])
def test_what_is_no_yaml_is_no_template(body: str) -> None:
    with pytest.raises(TemplateError):
        parse(body)
