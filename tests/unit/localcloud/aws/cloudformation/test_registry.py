"""What CloudFormation's registry allows in a region, and how it says no."""

import json

import pytest

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.template import KNOWN_AFTER_APPLY

REGION = "us-west-2"
GROUP = {
    "InstanceGroupName": "workers",
    "InstanceType": "ml.p5.48xlarge",
    "InstanceCount": 2,
    "ExecutionRole": "arn:aws:iam::123456789012:role/nodes",
}


def told(kind, **properties):
    return [str(one) for one in registry.violations(kind, properties, region=REGION)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Nope": 1}, "#/InstanceGroups/0: extraneous key [Nope] is not permitted"),
        ({"InstanceCount": "two"}, "#/InstanceGroups/0/InstanceCount: expected type: Integer, found: String"),
        (
            {"OnStartDeepHealthChecks": ["MultiNodeTrainingValidation"]},
            "#/InstanceGroups/0/OnStartDeepHealthChecks/0: failed validation constraint for keyword [enum]",
        ),
        (
            {"InstanceGroupName": "no_underscore"},
            "#/InstanceGroups/0/InstanceGroupName: failed validation constraint for keyword [pattern]",
        ),
        (
            {"InstanceStorageConfigs": [{"FsxLustreConfig": {"DnsName": "a", "MountName": "b"}, "Nope": 1}]},
            "#/InstanceGroups/0/InstanceStorageConfigs/0: #: 0 subschemas matched instead of one",
        ),
        ({"InstanceCount": -1}, "#/InstanceGroups/0/InstanceCount: failed validation constraint for keyword [minimum]"),
    ],
)
def test_a_property_that_the_schema_refuses_is_told_in_cloudformations_words(change, words):
    assert words in told("AWS::SageMaker::Cluster", InstanceGroups=[{**GROUP, **change}])


def test_nothing_is_told_about_properties_that_the_schema_allows():
    assert told("AWS::SageMaker::Cluster", InstanceGroups=[GROUP]) == []


@pytest.mark.parametrize(
    ("kind", "properties", "words"),
    [
        ("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24"}, "#: required key [VpcId] not found"),
        ("AWS::SNS::Topic", {"TopicArn": "arn:aws:sns:::x"}, "#: extraneous key [TopicArn] is not permitted"),
        ("AWS::KMS::Key", {"PendingWindowInDays": 1}, "failed validation constraint for keyword [minimum]"),
        ("Custom::AWS", {"Create": "{}"}, "#: required key [ServiceToken] not found"),
    ],
)
def test_missing_and_read_only_properties_are_refused(kind, properties, words):
    assert any(words in one for one in told(kind, **properties))


def test_a_type_is_known_only_where_its_region_has_it():
    assert registry.available("AWS::SageMaker::ClusterSchedulerConfig", "us-east-1")
    assert not registry.available("AWS::SageMaker::ClusterSchedulerConfig", "us-west-2")
    assert not registry.available("AWS::SageMaker::Cluster", "eu-nowhere-1")
    assert registry.available("Custom::Anything", "us-west-2")


def test_what_is_not_known_before_the_deployment_is_not_held_against_it():
    group = {**GROUP, "ExecutionRole": KNOWN_AFTER_APPLY, "Nope": 1, "InstanceGroupName": "a_b"}

    found = [
        str(one) for one in registry.foreseen("AWS::SageMaker::Cluster", {"InstanceGroups": [group]}, region=REGION)
    ]

    assert found == [
        "#/InstanceGroups/0/InstanceGroupName: failed validation constraint for keyword [pattern]",
        "#/InstanceGroups/0: extraneous key [Nope] is not permitted",
    ]


def test_types_that_aws_does_not_judge_beforehand_are_left_to_the_deployment():
    wrong = {"FileSystemType": "LUSTRE", "Nope": 1}

    assert registry.foreseen("AWS::FSx::FileSystem", wrong, region=REGION) == []
    assert registry.violations("AWS::FSx::FileSystem", wrong, region=REGION) != []


def test_judging_a_type_loads_no_linter(tmp_path):
    import subprocess
    import sys

    program = (
        "import sys; from holdfast.localcloud.aws.cloudformation import registry; "
        f"registry.violations('AWS::SageMaker::Cluster', {json.dumps(GROUP)}, region='us-west-2'); "
        "sys.exit('cfnlint' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False).returncode == 0
