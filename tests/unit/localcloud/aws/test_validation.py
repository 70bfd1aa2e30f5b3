"""Requests are judged by the service models, in AWS's words."""

import pytest
from moto.core.utils import get_service_model

from holdfast.localcloud.aws.host import violations

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"


def judged(operation, value):
    return violations(shape=get_service_model("sagemaker").operation_model(operation).input_shape, value=value)


def group(**changes):
    return {
        "InstanceGroupName": "g",
        "InstanceType": "ml.m5.xlarge",
        "InstanceCount": 1,
        "ExecutionRole": "arn:aws:iam::123456789012:role/r",
        **changes,
    }


def test_a_good_request_passes():
    tags = [{"Key": "holdfast:stand-in:gpu", "Value": "cpu"}]
    assert judged("CreateCluster", {"ClusterName": "lab", "InstanceGroups": [group()], "Tags": tags}) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"InstanceCount": -1}, "'instanceGroups.1.member.instanceCount' failed to satisfy constraint: "
         "Member must have value greater than or equal to 0"),
        ({"InstanceCount": 6759}, "less than or equal to 6758"),
        ({"InstanceCount": "one"}, "Member must be of type integer"),
        ({"InstanceCount": True}, "Member must be of type integer"),
        ({"InstanceGroupName": "a_b"}, "Member must satisfy regular expression pattern: [a-zA-Z0-9](-*[a-zA-Z0-9])*"),
        ({"InstanceGroupName": "a" * 64}, "Member must have length less than or equal to 63"),
        ({"InstanceType": "ml.p5.1xlarge"}, "enum value set: [ml.p5.48xlarge, ml.p5.4xlarge, ... 207 more]"),
        ({"ExecutionRole": None}, "Value null at 'instanceGroups.1.member.executionRole'"),
        ({"SlurmConfig": {"NodeType": "Worker"}}, "enum value set: [Controller, Login, Compute]"),
        ({"InstanceStorageConfigs": [{}]}, "exactly one of EbsVolumeConfig, FsxLustreConfig, FsxOpenZfsConfig"),
        ({"LifeCycleConfig": "s3://x"}, "Member must be of type structure"),
    ],
)  # fmt: skip
def test_each_constraint_of_the_model_is_told(changes, words):
    found = judged("CreateCluster", {"ClusterName": "lab", "InstanceGroups": [group(**changes)]})

    assert any(words in one for one in found), found


def test_all_violations_come_at_once():
    found = judged("CreateCluster", {"InstanceGroups": [group(InstanceCount=-1), group(InstanceType="x")]})

    assert len(found) == 3


def test_patterns_with_javas_character_classes_are_understood():
    assert judged("AddTags", {"ResourceArn": ARN, "Tags": [{"Key": "a b:c", "Value": "x@y"}]}) == []
    assert judged("AddTags", {"ResourceArn": ARN, "Tags": [{"Key": "a?b", "Value": "x"}]})
