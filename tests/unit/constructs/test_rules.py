"""The rules at synthesis: what a CDK app is told, and when its synthesis fails."""

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import cloudformation_include as include
from constructs import Construct, RootConstruct

from holdfast_constructs import (
    HyperPodCluster,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    SlurmOrchestrator,
    register_rules,
)

CASES = Path(__file__).parents[2] / "cases" / "templates"
STRICT = {"@aws-cdk/core:validateAgainstDefaultRules": True}
ENVIRONMENT = cdk.Environment(account="111122223333", region="us-west-2")
EIGHT = {
    "HF104": "InstanceGroups.3.InstanceGroupName",
    "HF107": "InstanceGroups.2.InstanceType",
    "HF110": "InstanceGroups.1.MinInstanceCount",
    "HF403": "InstanceGroups.3.SlurmConfig.NodeType",
    "HF406": "InstanceGroups.2.SlurmConfig.PartitionNames",
    "HF407": "InstanceGroups.3.SlurmConfig.PartitionNames",
    "HF412": "Orchestrator.Slurm.SlurmConfigStrategy",
    "HF502": "InstanceGroups.1.LifeCycleConfig.SourceS3Uri",
}
"""The defects of tests/cases/templates/eight-defects.json, and where they are."""


def new_app(outdir: Path) -> cdk.App:
    return cdk.App(context=STRICT, analytics_reporting=False, outdir=str(outdir))


def bare(outdir: Path, case: str, *, rules: bool) -> cdk.App:
    """An app of bare L1s."""
    app = new_app(outdir)
    stack = cdk.Stack(app, "Demo", env=ENVIRONMENT)
    include.CfnInclude(stack, "Bare", template_file=str(CASES / f"{case}.json"))
    if rules:
        register_rules(stack)
    return app


def report(outdir: Path) -> list[dict[str, Any]]:
    """What the CDK was told by the plugins, flat."""
    found = json.loads((outdir / "validation-report.json").read_text())
    return [
        {**violation, **violation["violatingConstructs"][0]}
        for plugin in found["pluginReports"]
        for violation in plugin["violations"]
    ]


def failure(app: cdk.App) -> str:
    with pytest.raises(RuntimeError, match="ValidationFailed") as caught:
        app.synth()
    return str(caught.value)


def errors(text: str) -> dict[str, str]:
    """Where each error is, by code."""
    return dict(re.findall(r"^ERROR (HF\d+) (\S+): ", text.replace("ValidationFailed: ", ""), re.MULTILINE))


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("eight")
    return failure(bare(folder, "eight-defects", rules=True)), folder


def test_eight_defects_synthesise_without_a_word_when_nothing_but_the_cdk_looks(tmp_path: Path) -> None:
    bare(tmp_path, "eight-defects", rules=False).synth()

    assert report(tmp_path) == []


def test_the_rules_name_all_eight_each_with_its_path(eight: tuple[str, Path]) -> None:
    assert errors(eight[0]) == EIGHT


def test_each_error_is_told_with_construct_fix_and_how_to_acknowledge_it(eight: tuple[str, Path]) -> None:
    assert (
        "ERROR HF110 InstanceGroups.1.MinInstanceCount: got 8; allowed: at most 4, the nodes of the group (holdfast)\n"
        "   Demo/Bare/Cluster (Cluster) aws-cdk-lib.aws_sagemaker.CfnCluster\n"
        "   Suggested fix: lower the minimum, or raise the count\n"
        "   Acknowledge with 'holdfast::HF110'\n"
    ) in eight[0]
    assert eight[0].count("Suggested fix: ") == eight[0].count("Acknowledge with 'holdfast::")


def test_no_message_holds_the_path_of_a_file(eight: tuple[str, Path]) -> None:
    told = [violation["description"] for violation in report(eight[1])]

    assert not [text for text in told if str(eight[1]) in text]


def test_the_report_for_programs_has_code_severity_and_property(eight: tuple[str, Path]) -> None:
    (found,) = (violation for violation in report(eight[1]) if violation["ruleName"] == "HF412")

    assert found["severity"] == "error"
    assert found["cloudFormationResource"] == {
        "logicalId": "Cluster",
        "templatePath": "Demo.template.json",
        "propertyPaths": ["Properties.Orchestrator.Slurm.SlurmConfigStrategy"],
    }


def test_the_clean_twin_synthesises_and_what_nobody_can_know_is_said_once_per_place(tmp_path: Path) -> None:
    bare(tmp_path, "eight-defects.clean", rules=True).synth()
    found = report(tmp_path)

    assert {violation["severity"] for violation in found} == {"info"}
    assert {violation["ruleName"] for violation in found} == {"not-checked"}
    assert len({violation["description"].partition(":")[0] for violation in found}) == len(found)


def test_an_acknowledged_finding_does_not_fail_the_synthesis(tmp_path: Path) -> None:
    app = bare(tmp_path, "eight-defects", rules=True)
    stack = app.node.find_child("Demo")
    for code in EIGHT:
        cdk.Validations.of(stack).acknowledge(cdk.Acknowledgment(id=f"holdfast::{code}", reason="a test"))
    app.synth()

    found = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert {violation["reason"] for plugin in found for violation in plugin["suppressedViolations"]} == {"a test"}
    assert "error" not in {violation["severity"] for violation in report(tmp_path)}


def nodes_role(stack: cdk.Stack, *, network: bool) -> iam.Role:
    """A role as people first write it, and with what nodes in a VPC need besides."""
    role = iam.Role(
        stack,
        "Role",
        assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSageMakerClusterInstanceRolePolicy")],
    )
    if network:
        actions = [f"ec2:{action}*" for action in ("Create", "Delete", "Describe", "Detach")]
        role.add_to_policy(iam.PolicyStatement(actions=[*actions, "fsx:DescribeFileSystems"], resources=["*"]))
    return role


def legacy_app(outdir: Path, scripts: Path, *, mended: bool) -> cdk.App:
    """A first HyperPod app in good faith, with L2s where the CDK has them."""
    app = new_app(outdir)
    stack = cdk.Stack(app, "Demo", env=ENVIRONMENT)
    register_rules(stack)
    vpc = ec2.Vpc(
        stack,
        "Vpc",
        availability_zones=["us-west-2a"],
        gateway_endpoints={"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)},
    )
    group = ec2.SecurityGroup(stack, "Nodes", vpc=vpc, allow_all_outbound=not mended)
    group.connections.allow_internally(ec2.Port.all_traffic())
    role = nodes_role(stack, network=mended)
    bucket = s3.Bucket(stack, "Scripts", bucket_name=f"sagemaker-demo-{stack.account}")
    delivery = s3_deployment.BucketDeployment(
        stack,
        "Delivery",
        sources=[s3_deployment.Source.asset(str(scripts))],
        destination_bucket=bucket,
        destination_key_prefix="lifecycle/9f86d081",
    )
    nodes = {
        "controller": ("ml.m5.xlarge", "Controller" if mended else "Login"),
        "workers": ("ml.g6e.48xlarge", "Compute"),
    }
    cluster = sagemaker.CfnCluster(
        stack,
        "Cluster",
        instance_groups=[
            {
                "instanceGroupName": name,
                "instanceType": instance_type,
                "instanceCount": 1,
                "executionRole": role.role_arn,
                "threadsPerCore": 1,
                "lifeCycleConfig": {
                    "onCreate": "on_create.sh",
                    "sourceS3Uri": f"s3://{bucket.bucket_name}/lifecycle/9f86d081",
                },
                "slurmConfig": {"nodeType": node_type, "partitionNames": ["dev"] if node_type == "Compute" else None},
            }
            for name, (instance_type, node_type) in nodes.items()
        ],
        orchestrator={"slurm": {"slurmConfigStrategy": "Managed"}},
        vpc_config={"securityGroupIds": [group.security_group_id], "subnets": [vpc.private_subnets[0].subnet_id]},
    )
    cluster.node.add_dependency(role, delivery, vpc, group)
    return app


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "on_create.sh").write_text("#!/bin/bash\ntrue\n")
    return folder


def test_what_failed_in_a_real_deploy_after_a_clean_synthesis_is_named(tmp_path: Path, scripts: Path) -> None:
    (scripts / "provisioning_parameters.json").write_text("{}")
    text = failure(legacy_app(tmp_path / "out", scripts, mended=False))

    found = errors(text)
    assert found["HF512"] == "Policies"  # the role lacks ec2 actions
    assert found["HF403"] == "InstanceGroups"  # no Controller
    assert found["HF416"] == "InstanceGroups.0.LifeCycleConfig.SourceS3Uri"  # the legacy file is staged
    assert found["HF205"] == "SecurityGroupEgress"  # no egress to itself
    assert "Demo/Nodes" in text


def test_the_mended_app_has_no_finding(tmp_path: Path, scripts: Path) -> None:
    legacy_app(tmp_path / "out", scripts, mended=True).synth()

    found = report(tmp_path / "out")
    assert [violation["description"] for violation in found if violation["severity"] in ("error", "warning")] == []


def constructs_app(
    outdir: Path, scripts: Path, *, defects: Mapping[str, Any], environment: cdk.Environment | None = ENVIRONMENT
) -> cdk.App:
    """An app of our constructs, which register the rules, and what it does to the resource below them."""
    app = new_app(outdir)
    stack = cdk.Stack(app, "Demo", env=environment)
    groups = [
        InstanceGroup(name="controller", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller"),
        *(
            InstanceGroup(
                name=name, instance_type="ml.p5.48xlarge", instance_count=1, node_type="Compute", partition="dev"
            )
            for name in ("workers", "more")
        ),
    ]
    network = HyperPodNetwork(stack, "Network", cidr="10.1.0.0/16", availability_zone="us-west-2a")
    cluster = HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=SlurmOrchestrator(),
        instance_groups=groups,
        lifecycle=LifecycleBundle(
            stack, "Lifecycle", name="demo", sources=[scripts / "on_create.sh"], config={"cluster_name": "demo"}
        ),
        continuous_provisioning=True,
    )
    resource = cluster.node.default_child
    assert isinstance(resource, cdk.CfnResource)
    if defects:
        # A role that may read no bucket but those named sagemaker-.
        role = nodes_role(stack, network=True)
        resource.add_property_override("InstanceGroups.1.ExecutionRole", role.role_arn)
    for place, value in defects.items():
        resource.add_property_override(place, value)
    return app


def test_the_eight_defects_below_our_own_constructs_are_named_too(tmp_path: Path, scripts: Path) -> None:
    defects = {
        "InstanceGroups.1.InstanceRequirements": {"InstanceTypes": ["ml.p5en.48xlarge"]},
        "InstanceGroups.1.LifeCycleConfig.SourceS3Uri": "s3://demo-lifecycle/9f86d081",
        "InstanceGroups.1.MinInstanceCount": 8,
        "InstanceGroups.1.SlurmConfig.PartitionNames": None,
        "InstanceGroups.2.InstanceGroupName": "controller",
        "InstanceGroups.2.SlurmConfig.NodeType": "Controller",
        "Orchestrator.Slurm.SlurmConfigStrategy": "Managed",
    }

    assert errors(failure(constructs_app(tmp_path / "out", scripts, defects=defects))) == {
        "HF040": "DependsOn",
        "HF104": "InstanceGroups.2.InstanceGroupName",
        "HF107": "InstanceGroups.1.InstanceType",
        "HF110": "InstanceGroups.1.MinInstanceCount",
        "HF403": "InstanceGroups.2.SlurmConfig.NodeType",
        "HF406": "InstanceGroups.1.SlurmConfig.PartitionNames",
        "HF407": "InstanceGroups.2.SlurmConfig.PartitionNames",
        "HF412": "Orchestrator.Slurm.SlurmConfigStrategy",
        "HF502": "InstanceGroups.1.LifeCycleConfig.SourceS3Uri",
    }


def test_our_own_constructs_as_they_are_have_no_finding(tmp_path: Path, scripts: Path) -> None:
    constructs_app(tmp_path / "out", scripts, defects={}).synth()

    assert report(tmp_path / "out") == []


def test_a_stack_for_any_account_and_region_has_no_error_either(tmp_path: Path, scripts: Path) -> None:
    constructs_app(tmp_path / "out", scripts, defects={}, environment=None).synth()

    found = [violation for violation in report(tmp_path / "out") if "Validate" not in violation["ruleName"]]
    assert {violation["severity"] for violation in found} <= {"info"}


def test_what_cannot_be_checked_is_acknowledged_where_it_is(tmp_path: Path) -> None:
    app = bare(tmp_path, "eight-defects.clean", rules=True)
    acknowledgment = cdk.Acknowledgment(id="holdfast::not-checked", reason="looked at by hand")
    cdk.Validations.of(app.node.find_child("Demo").node.find_child("Bare")).acknowledge(acknowledgment)
    app.synth()

    assert report(tmp_path) == []


class Network(cdk.Stack):
    """What clusters of other stacks stand on."""

    def __init__(self, scope: Construct, construct_id: str, *, egress_to_itself: bool) -> None:
        super().__init__(scope, construct_id, env=ENVIRONMENT)
        self.vpc = ec2.Vpc(self, "Vpc", availability_zones=["us-west-2a"])
        self.group = ec2.SecurityGroup(self, "Nodes", vpc=self.vpc, allow_all_outbound=not egress_to_itself)
        self.group.connections.allow_internally(ec2.Port.all_traffic())


def cluster_on(scope: Construct, *, group: str, subnet: str, count: int = 1) -> sagemaker.CfnCluster:
    return sagemaker.CfnCluster(
        scope,
        "Cluster",
        instance_groups=[
            {
                "instanceGroupName": "workers",
                "instanceType": "ml.p5.48xlarge",
                "instanceCount": count,
                "executionRole": "arn:aws:iam::111122223333:role/nodes",
            }
        ],
        vpc_config={"securityGroupIds": [group], "subnets": [subnet]},
    )


def test_stages_stacks_and_nested_stacks_are_judged_together_and_once(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    stages = {name: cdk.Stage(app, name) for name in ("Good", "Bad")}
    for name, stage in stages.items():
        network = Network(stage, "Network", egress_to_itself=name == "Good")
        stack = cdk.Stack(stage, "Cluster", env=ENVIRONMENT)
        nested = cdk.NestedStack(stack, "Nested")
        for place in (stack, nested):
            cluster_on(
                place, group=network.group.security_group_id, subnet=network.vpc.private_subnets[0].subnet_id, count=2
            )
            register_rules(place)
    failure(app)

    found = [violation for violation in report(tmp_path) if violation["ruleName"] == "HF205"]
    assert [violation["constructPath"] for violation in found] == ["Bad/Network/Nodes/Resource"]
    plugins = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert [plugin["pluginName"] for plugin in plugins].count("holdfast") == 1
    overlooked = [violation for violation in report(tmp_path) if violation["ruleName"] == "not-checked"]
    not_checked = [violation["description"] for violation in overlooked]
    assert not [text for text in not_checked if "SecurityGroupIds" in text or "Subnets" in text]


def test_what_is_somebody_elses_is_not_checked_and_never_silent(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    stack = cdk.Stack(app, "Demo")
    register_rules(stack)
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    cluster_on(stack, group=group.security_group_id, subnet=cdk.Fn.import_value("Subnet"))
    with contextlib.suppress(RuntimeError):  # it has no orchestrator
        app.synth()

    told = {
        violation["description"].partition(":")[0]: violation["description"]
        for violation in report(tmp_path)
        if violation["severity"] == "info"
    }
    assert "HF205" in told["VpcConfig.SecurityGroupIds.0"]
    assert "the export Subnet is not known before deployment" in told["VpcConfig.Subnets"]
    assert "HF203" in told["VpcConfig.Subnets"]
    assert "HF512" in told["InstanceGroups.0.ExecutionRole"]


def test_what_an_imported_subnet_was_told_is_known_to_the_rules(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    stack = cdk.Stack(app, "Demo", env=ENVIRONMENT)
    subnet = ec2.Subnet.from_subnet_attributes(
        stack,
        "Subnet",
        subnet_id="subnet-0123456789abcdef0",
        availability_zone="eu-west-1a",
        ipv4_cidr_block="10.1.0.0/28",
    )
    register_rules(stack, subnets=[subnet])
    cluster_on(stack, group="sg-0123456789abcdef0", subnet=subnet.subnet_id)

    text = failure(app)

    assert "HF210 VpcConfig.Subnets.0" in text
    assert "HF209" in errors(text)


def test_a_subnet_that_is_known_by_id_alone_is_not_checked_in_one_entry(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    stack = cdk.Stack(app, "Demo", env=ENVIRONMENT)
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    register_rules(stack, subnets=[subnet])
    cluster_on(stack, group="sg-0123456789abcdef0", subnet=subnet.subnet_id)
    with contextlib.suppress(RuntimeError):  # it has no orchestrator
        app.synth()

    told = [each["description"] for each in report(tmp_path) if "subnet-0123456789abcdef0" in each["description"]]

    assert len(told) == 1
    assert {"HF203", "HF209", "HF210"} <= set(re.findall(r"HF\d+", told[0]))


def test_without_a_stage_around_it_nothing_is_registered() -> None:
    root = RootConstruct()
    register_rules(root)

    assert root.node.metadata == []
