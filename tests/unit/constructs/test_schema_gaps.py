"""What is acknowledged of the CDK's validator: right by CloudFormation's own schema, and still objected to."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsonschema
import pytest
from aws_cdk import aws_sagemaker as sagemaker
from registry_schemas import region_types, schema

from holdfast import catalog
from holdfast_constructs import InstanceGroup
from holdfast_constructs.synthesis import GAPS, QUOTA_GAP

USES: dict[str, dict[str, Any]] = {
    "F3002": {"image_release_version": "1.2.3"},
    "E1152": {"image_id": "default"},
}


QUOTA = {
    "Name": "research",
    "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/0123456789ab",
    "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 60},
    "ComputeQuotaConfig": {"ResourceSharingConfig": {"Strategy": "Lend"}},
}


@pytest.fixture(scope="module")
def objections(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What the validator finds in a cluster that uses all of it and acknowledges nothing."""
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("gaps")), analytics_reporting=False)
    cdk.Validations.of(app).add_plugins(cdk.CloudFormationValidatePlugin())
    stack = cdk.Stack(app, "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    group = sagemaker.CfnCluster.ClusterInstanceGroupProperty(
        instance_group_name="workers",
        instance_count=1,
        instance_type="ml.m5.xlarge",
        execution_role="arn:aws:iam::111122223333:role/nodes",
        **{key: value for uses in USES.values() for key, value in uses.items()},
    )
    sagemaker.CfnCluster(stack, "Cluster", cluster_name="demo", instance_groups=[group])
    cdk.CfnResource(stack, "Quota", type=catalog.QUOTA, properties=QUOTA)
    try:
        app.synth()
    except RuntimeError as error:
        assert "ValidationFailed" in str(error)  # noqa: PT017
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    return {violation["ruleName"] for plugin in report["pluginReports"] for violation in plugin["violations"]}


def test_every_gap_has_its_example() -> None:
    assert {gap.rule for gap in GAPS} == set(USES)
    for gap in GAPS:
        assert gap.is_used(InstanceGroup(name="x", instance_count=1, instance_type="ml.m5.xlarge", **USES[gap.rule]))
        assert not gap.is_used(InstanceGroup(name="x", instance_count=1, instance_type="ml.m5.xlarge"))


@pytest.mark.parametrize("rule", sorted([*USES, QUOTA_GAP]))
def test_the_validator_still_objects_so_that_the_acknowledgement_is_needed(rule: str, objections: set[str]) -> None:
    assert rule in objections, "the validator has learnt it: take the gap out of schema_gaps.py"


@pytest.mark.parametrize("rule", sorted(USES))
def test_the_schema_of_cloudformation_allows_what_is_acknowledged(rule: str) -> None:
    names = {"image_release_version": "ImageReleaseVersion", "image_id": "ImageId"}
    found = dict(schema("AWS::SageMaker::Cluster", "us-west-2"))
    part = {"$ref": "#/definitions/ClusterInstanceGroup", "definitions": found["definitions"]}
    group = {
        "InstanceGroupName": "workers",
        "InstanceCount": 1,
        "InstanceType": "ml.m5.xlarge",
        "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
        **{names[key]: value for key, value in USES[rule].items()},
    }

    assert [error.message for error in jsonschema.Draft7Validator(part).iter_errors(group)] == []


def test_the_schema_of_cloudformation_has_the_type_that_the_validator_does_not_know() -> None:
    assert [error.message for error in jsonschema.Draft7Validator(schema(catalog.QUOTA)).iter_errors(QUOTA)] == []
    assert "AWS::SageMaker::ComputeQuota" in region_types("us-west-2")
    assert not hasattr(sagemaker, "CfnComputeQuota"), "aws-cdk-lib has the class: use it in eks_addons/operators.py"


def test_the_schema_refuses_the_check_that_the_api_alone_has() -> None:
    definition = schema("AWS::SageMaker::Cluster", "us-west-2")["definitions"]["DeepHealthCheckType"]

    assert definition["enum"] == ["InstanceStress", "InstanceConnectivity"]
