"""What values of templates come to: plain values, references, or not known."""

from typing import Any

import pytest

from holdfast.validation import UNRESOLVED
from holdfast.validation.cloudformation import (
    ABSENT,
    EXAMPLE_ACCOUNT,
    Graph,
    Intrinsics,
    Reference,
    Template,
    Text,
    Values,
)

BODY: dict[str, Any] = {
    "Parameters": {"Size": {"Type": "Number", "Default": 3}},
    "Mappings": {"Types": {"us-west-2": {"worker": "ml.p5.48xlarge"}}},
    "Resources": {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Fn::Sub": "sagemaker-${AWS::Region}"}}},
        "Unnamed": {"Type": "AWS::S3::Bucket"},
        "Table": {"Type": "AWS::EC2::RouteTable"},
        "Provided": {"Type": "Custom::Provided"},
        "OfAnother": {"Type": "AWS::CloudFormation::CustomResource"},
        "Registered": {"Type": "Somebody::Service::Thing"},
        "Wait": {"Type": "AWS::CloudFormation::WaitCondition"},
        "Kubernetes": {"Type": "Custom::AWSCDK-EKS-Cluster"},
    },
}


def resolve(value: Any, *, region: str | None = "us-west-2", others: tuple[Template, ...] = ()) -> object:
    template = Template(body=BODY, region=region, account="111122223333")
    return Intrinsics(Graph([template, *others])).resolve(template, value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"Ref": "AWS::Region"}, "us-west-2"),
        ({"Ref": "AWS::AccountId"}, "111122223333"),
        ({"Ref": "AWS::Partition"}, "aws"),
        ({"Fn::Join": ["", ["sagemaker.", {"Ref": "AWS::URLSuffix"}]]}, "sagemaker.amazonaws.com"),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}, 1]]}, "a-us-west-2-1"),
        ({"Fn::Sub": "s3://${Bucket}/${!literal}"}, "s3://sagemaker-us-west-2/${literal}"),
        ({"Fn::Sub": ["${Name}-1", {"Name": {"Ref": "AWS::Region"}}]}, "us-west-2-1"),
        ({"Fn::Select": [1, ["a", "b"]]}, "b"),
        ({"Fn::Select": ["2", {"Fn::Split": ["/", "a/b/c"]}]}, "c"),
        ({"Fn::FindInMap": ["Types", {"Ref": "AWS::Region"}, "worker"]}, "ml.p5.48xlarge"),
        ([1, {"Ref": "AWS::NoValue"}, 2], [1, 2]),
        ({"A": {"Ref": "AWS::NoValue"}, "B": True}, {"B": True}),
    ],
)
def test_what_the_template_decides_is_known(value: Any, plain: object) -> None:
    assert resolve(value) == plain


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "Size"},
        {"Ref": "NotThere"},
        {"Ref": 3},
        {"Fn::GetAtt": ["NotThere", "Arn"]},
        {"Fn::GetAtt": "Bucket"},
        {"Fn::GetAtt": ["Provided", "SecurityGroupId"]},
        {"Ref": "Provided"},
        {"Fn::GetAtt": "OfAnother.SubnetId"},
        {"Ref": "OfAnother"},
        {"Fn::GetAtt": ["Registered", "Arn"]},
        {"Fn::GetAtt": ["Wait", "Data"]},
        {"Fn::If": ["Large", 1, 2]},
        {"Fn::GetAZs": ""},
        {"Fn::Select": [0, {"Fn::GetAZs": ""}]},
        {"Fn::Select": [7, ["a"]]},
        {"Fn::Join": "abc"},
        {"Fn::Join": ["", {"Ref": "Size"}]},
        {"Fn::Split": ["", "a"]},
        {"Fn::Split": ["/", {"Ref": "Table"}]},
        {"Fn::FindInMap": ["Types", "nowhere", "worker"]},
        {"Fn::ImportValue": "elsewhere"},
        {"Fn::Transform": {"Name": "Macro"}},
        {"Fn::Brandnew": []},
        {"Fn::Sub": "a", "Fn::Join": ["", []]},
        "{{resolve:ssm:/name}}",
    ],
)
def test_what_only_a_deployment_can_tell_is_unresolved(value: Any) -> None:
    assert resolve(value) is UNRESOLVED


def test_a_parameter_is_unresolved_although_it_has_a_default() -> None:
    assert resolve({"Ref": "Size"}) is UNRESOLVED


def test_pseudo_parameters_are_unresolved_in_a_template_for_any_region() -> None:
    assert resolve({"Ref": "AWS::Region"}, region=None) is UNRESOLVED
    assert resolve({"Ref": "AWS::Partition"}, region=None) is UNRESOLVED


def test_no_value_is_absent() -> None:
    assert resolve({"Ref": "AWS::NoValue"}) is ABSENT


def test_references_lead_to_the_resource() -> None:
    by_id, attribute = resolve({"Ref": "Table"}), resolve({"Fn::GetAtt": "Bucket.Arn"})

    assert isinstance(by_id, Reference)
    assert isinstance(attribute, Reference)
    assert (by_id.resource.logical_id, by_id.attribute) == ("Table", "Ref")
    assert (attribute.resource.logical_id, attribute.attribute) == ("Bucket", "Arn")


@pytest.mark.parametrize("attribute", ["Arn", "ClusterSecurityGroupId", "OpenIdConnectIssuerUrl"])
def test_attributes_that_the_cdk_gives_of_a_kubernetes_cluster_lead_to_it(attribute: str) -> None:
    found = resolve({"Fn::GetAtt": ["Kubernetes", attribute]})

    assert isinstance(found, Reference)
    assert found.resource.logical_id == "Kubernetes"


def test_text_with_an_attribute_that_a_provider_gives_has_a_gap_there() -> None:
    text = resolve({"Fn::Sub": "s3://${Provided.Bucket}/${Bucket}"})

    assert isinstance(text, Text)
    assert text.named() is None
    assert text.end == "/sagemaker-us-west-2"


def test_text_keeps_the_parts_that_are_known() -> None:
    text = resolve({"Fn::Sub": "s3://sagemaker-${AWS::AccountId}-${AWS::Region}/${Size}"}, region=None)

    assert isinstance(text, Text)
    assert text.start == "s3://sagemaker-111122223333-"
    assert text.with_gaps() == "s3://sagemaker-111122223333-${...}/${...}"


def test_text_names_a_resource_whose_name_aws_makes_up() -> None:
    text = resolve({"Fn::Join": ["", ["s3://", {"Ref": "Unnamed"}, "/data"]]})

    assert isinstance(text, Text)
    assert text.named() == "s3://${Unnamed}/data"


def test_an_import_leads_to_the_export_of_another_stack() -> None:
    other = Template(
        body={
            "Resources": {"Group": {"Type": "AWS::EC2::SecurityGroup"}},
            "Outputs": {
                "Out": {"Value": {"Fn::GetAtt": ["Group", "GroupId"]}, "Export": {"Name": "net:Group"}},
                "Odd": {"Value": 1, "Export": {"Name": {"Ref": "AWS::StackName"}}},
            },
        },
        region="us-west-2",
        account="111122223333",
    )
    found = resolve({"Fn::ImportValue": "net:Group"}, others=(other,))

    assert isinstance(found, Reference)
    assert found.resource.logical_id == "Group"


def test_an_export_of_another_region_is_not_taken() -> None:
    other = Template(body={"Outputs": {"O": {"Value": 1, "Export": {"Name": "x"}}}}, region="eu-west-1")

    assert resolve({"Fn::ImportValue": "x"}, others=(other,)) is UNRESOLVED


def test_circles_end() -> None:
    circle = {"Outputs": {"O": {"Value": {"Fn::ImportValue": "x"}, "Export": {"Name": "x"}}}}
    template = Template(body=circle)

    assert Intrinsics(Graph([template])).resolve(template, {"Fn::ImportValue": "x"}) is UNRESOLVED


@pytest.mark.parametrize("body", [{}, {"Resources": None}, {"Resources": {"A": None, "B": {}}, "Outputs": {"O": 1}}])
def test_a_template_may_be_anything(body: dict[str, Any]) -> None:
    graph = Graph([Template(body=body)])

    assert list(graph.of_type("AWS::SageMaker::Cluster")) == []


ROLE = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/nodes"}
KEY = {"Fn::Sub": "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/a"}


def test_an_open_account_has_an_example_and_an_open_region_has_none() -> None:
    template = Template(body={})
    values = Values(Graph([template]))
    role, key = (values.node(template, each, "") for each in (ROLE, KEY))

    assert role.value == role.example == f"arn:aws:iam::{EXAMPLE_ACCOUNT}:role/nodes"
    assert isinstance(key.value, Text)
    assert key.example == f"arn:aws:kms:us-east-1:{EXAMPLE_ACCOUNT}:key/a"


@pytest.mark.parametrize(("named", "account"), [("111122223333", "111122223333"), ("111122223333 444455556666", None)])
def test_a_template_is_read_in_the_one_account_that_it_names(named: str, account: str | None) -> None:
    template = Template(body={"Parameters": {"Of": {"Type": "String", "Default": named}}})

    value = Values(Graph([template])).node(template, ROLE, "").value

    assert value == f"arn:aws:iam::{account}:role/nodes" if account else isinstance(value, Text)


def test_nothing_is_an_example_unless_it_is_asked_for() -> None:
    template = Template(body={})

    assert Intrinsics(Graph([template])).resolve(template, {"Ref": "AWS::Partition"}) is UNRESOLVED
