"""Every property of AWS::SageMaker::Cluster can be had by a typed value, and is rendered as CloudFormation wants it."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.aws_sagemaker import CfnCluster

from holdfast_constructs import (
    AccountingDatabase,
    AutoPatch,
    AutoScaling,
    BatchSize,
    Deployment,
    EbsVolume,
    EksOrchestrator,
    HyperPodCluster,
    HyperPodNetwork,
    IHyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    LustreFileSystem,
    LustreMount,
    OpenZfsFileSystem,
    OpenZfsMount,
    OverrideVpc,
    RestrictedEnvironment,
    RestrictedInstanceGroup,
    RestrictedLustre,
    ScheduledUpdate,
    SlurmOrchestrator,
    Taint,
    TieredStorage,
)
from holdfast_constructs.eks import EksBase

OUR_OWN_FSX = "HyperPod makes the file systems of restricted groups itself"
NOT_REACHABLE = {
    "instancegroups.currentcount": "a read-back value",
    "restrictedinstancegroups.currentcount": "a read-back value",
    "instancegroups.autopatchconfig.patchschedule.nextpatchdate": "read-only in CloudFormation's resource schema",
    **{
        f"instancegroups.autopatchconfig.deploymentconfig.{leaf}": "for strategies that CloudFormation refuses"
        for leaf in (
            "autorollbackconfiguration.alarmname",
            "rollingupdatepolicy.maximumbatchsize.type",
            "rollingupdatepolicy.maximumbatchsize.value",
            "rollingupdatepolicy.rollbackmaximumbatchsize.type",
            "rollingupdatepolicy.rollbackmaximumbatchsize.value",
            "waitintervalinseconds",
        )
    },
    "restrictedinstancegroups.instancestorageconfigs.ebsvolumeconfig.rootvolume": "restricted groups take no key",
    "restrictedinstancegroups.instancestorageconfigs.ebsvolumeconfig.volumekmskeyid": "restricted groups take no key",
    "restrictedinstancegroups.instancestorageconfigs.fsxlustreconfig.dnsname": OUR_OWN_FSX,
    "restrictedinstancegroups.instancestorageconfigs.fsxlustreconfig.mountname": OUR_OWN_FSX,
    "restrictedinstancegroups.instancestorageconfigs.fsxlustreconfig.mountpath": OUR_OWN_FSX,
    "restrictedinstancegroups.instancestorageconfigs.fsxopenzfsconfig.dnsname": OUR_OWN_FSX,
    "restrictedinstancegroups.instancestorageconfigs.fsxopenzfsconfig.mountpath": OUR_OWN_FSX,
}
KEY_ARN = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/frontier"


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


def network_of(stack: cdk.Stack) -> IHyperPodNetwork:
    subnet = ec2.Subnet.from_subnet_attributes(
        stack, "Subnet", subnet_id="subnet-0123456789abcdef0", availability_zone="us-west-2a"
    )
    return HyperPodNetwork.from_attributes(
        stack,
        "Network",
        vpc=ec2.Vpc.from_vpc_attributes(
            stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"]
        ),
        subnet=subnet,
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0"),
    )


def bundle_of(stack: cdk.Stack, folder: Path) -> LifecycleBundle:
    for name in ("on_create.sh", "ready.sh"):
        (folder / name).write_text("#!/bin/bash\n")
    sources = [folder / "on_create.sh", folder / "ready.sh"]
    return LifecycleBundle(stack, "Lifecycle", name="demo", sources=sources, config={}, on_init_complete="ready.sh")


def elsewhere(stack: cdk.Stack) -> OverrideVpc:
    return OverrideVpc(
        subnets=[ec2.Subnet.from_subnet_id(stack, "Other", "subnet-1123456789abcdef0")],
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "OtherGroup", "sg-1123456789abcdef0")],
    )


def deployment_of(stack: cdk.Stack) -> Deployment:
    alarm = cloudwatch.Alarm.from_alarm_arn(
        stack, "Slow", "arn:aws:cloudwatch:us-west-2:111122223333:alarm:training-throughput"
    )
    return Deployment(
        maximum_batch_size=BatchSize.percent(25),
        rollback_maximum_batch_size=BatchSize.instances(4),
        wait_interval=cdk.Duration.minutes(10),
        rollback_alarms=[alarm],
    )


def slurm_cluster(stack: cdk.Stack, folder: Path) -> HyperPodCluster:
    network = network_of(stack)
    key = kms.Key.from_key_arn(stack, "Key", KEY_ARN)
    secret = secretsmanager.Secret.from_secret_name_v2(stack, "Secret", "accounting")
    files: Any = {"subnet": network.subnet, "security_group": network.security_group, "storage_capacity_gib": 4800}
    lustre = LustreFileSystem(stack, "Lustre", per_unit_storage_throughput=1000, efa=True, **files)
    home = OpenZfsFileSystem(stack, "Home", **files)
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=SlurmOrchestrator(
            accounting_database=AccountingDatabase(
                endpoint="db.example.com", secret=secret, port=3307, name="slurm_acct_db"
            )
        ),
        instance_groups=[
            InstanceGroup(
                name="head", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller", mounts=()
            ),
            InstanceGroup(
                name="workers",
                instance_type="ml.p5.48xlarge",
                instance_count=16,
                min_instance_count=14,
                threads_per_core=2,
                root_volume_key=key,
                volumes=[EbsVolume(size_gib=500, key=key)],
                training_plan_arn=PLAN,
                deep_health_checks=["InstanceStress", "InstanceConnectivity"],
                image_id="ami-0123456789abcdef0",
                network_interface="efa-only",
                node_type="Compute",
                partition="train",
            ),
            InstanceGroup(
                name="others",
                instance_types=["ml.g6e.48xlarge", "ml.g5.48xlarge"],
                instance_count=4,
                capacity="on-demand",
                override_vpc=elsewhere(stack),
                node_type="Compute",
                partition="any",
            ),
        ],
        lifecycle=bundle_of(stack, folder),
        lustre=LustreMount(file_system=lustre),
        home=OpenZfsMount(file_system=home),
        continuous_provisioning=True,
        tags={"team": "research"},
    )


def eks_cluster(stack: cdk.Stack, folder: Path) -> HyperPodCluster:
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network_of(stack),
        orchestrator=EksOrchestrator(control_plane=EksBase(stack, "Eks", cluster_name="demo-eks")),
        instance_groups=[
            InstanceGroup(
                name="evaluation",
                instance_type="ml.g5.48xlarge",
                instance_count=4,
                image_release_version="1.2.3",
                capacity="spot",
                root_volume_key=kms.Key.from_key_arn(stack, "RootKey", KEY_ARN),
                labels={"role": "evaluation"},
                taints=[Taint(key="purpose", value="evaluation", effect="NoSchedule")],
                scheduled_update=ScheduledUpdate(
                    schedule_expression="cron(00 03 ? * SUN *)", deployment=deployment_of(stack)
                ),
            ),
            InstanceGroup(
                name="patched",
                instance_type="ml.m5.4xlarge",
                instance_count=1,
                auto_patch=AutoPatch(strategy="WhenIdle"),
            ),
        ],
        lifecycle=bundle_of(stack, folder),
        continuous_provisioning=True,
        auto_scaling=AutoScaling(),
        tiered_storage=TieredStorage(memory_percentage=20),
    )


def extended_cluster(stack: cdk.Stack, folder: Path) -> HyperPodCluster:
    group = InstanceGroup(name="head", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller")
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network_of(stack),
        orchestrator=SlurmOrchestrator(),
        instance_groups=[group],
        lifecycle=bundle_of(stack, folder),
    )


def restricted_cluster(stack: cdk.Stack, folder: Path) -> HyperPodCluster:
    group = RestrictedInstanceGroup(
        name="nova",
        instance_type="ml.p5.48xlarge",
        instance_count=2,
        volumes=[EbsVolume(size_gib=100)],
        training_plan_arn=PLAN,
        deep_health_checks=["InstanceStress"],
        override_vpc=elsewhere(stack),
        lustre=RestrictedLustre(storage_capacity_gib=1200, per_unit_storage_throughput=125),
    )
    shared = RestrictedLustre(storage_capacity_gib=2400, per_unit_storage_throughput=250)
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network_of(stack),
        orchestrator=EksOrchestrator(control_plane=EksBase(stack, "Eks", cluster_name="demo-eks")),
        instance_groups=[],
        restricted_instance_groups=[group],
        restricted_environment=RestrictedEnvironment(lustre=shared),
        lifecycle=bundle_of(stack, folder),
    )


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    stack = new_stack()
    slurm_cluster(stack, tmp_path_factory.mktemp("slurm"))
    return dict(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="module")
def eks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    stack = new_stack()
    eks_cluster(stack, tmp_path_factory.mktemp("eks"))
    return dict(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    stack = new_stack()
    restricted_cluster(stack, tmp_path_factory.mktemp("restricted"))
    return dict(assertions.Template.from_stack(stack).to_json())


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    stack = new_stack()
    extended_cluster(stack, tmp_path_factory.mktemp("extended"))
    return dict(assertions.Template.from_stack(stack).to_json())


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: item for name, item in template["Resources"].items() if item["Type"] == kind}


def cluster_of(template: dict[str, Any]) -> dict[str, Any]:
    (cluster,) = of_type(template, "AWS::SageMaker::Cluster").values()
    properties: dict[str, Any] = cluster["Properties"]
    return properties


def leaves_of_the_class(kind: Any, before: str = "") -> Iterator[str]:
    """Paths of all properties that are values, as the generated class has them."""
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name in ("self", "scope", "id"):
            continue
        path = before + name.replace("_", "")
        nested = re.search(r"CfnCluster\.(\w+)", str(parameter.annotation))
        if nested is None:
            yield path
        else:
            yield from leaves_of_the_class(getattr(CfnCluster, nested.group(1)), path + ".")


def leaves_of_the_template(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from leaves_of_the_template(item, path)
    elif isinstance(node, dict) and node and not any(key.startswith(("Fn::", "Ref")) for key in node):
        for key, value in node.items():
            yield from leaves_of_the_template(value, f"{path}.{key}" if path else key)
    yield path.lower()


def test_every_property_of_the_generated_class_is_reachable_or_has_a_reason_not_to_be(
    slurm: dict[str, Any], eks: dict[str, Any], restricted: dict[str, Any], extended: dict[str, Any]
) -> None:
    templates = (slurm, eks, restricted, extended)
    rendered = {path for template in templates for path in leaves_of_the_template(cluster_of(template))}
    declared = set(leaves_of_the_class(CfnCluster))

    assert declared - rendered == set(NOT_REACHABLE)


DEPLOYMENT = {
    "RollingUpdatePolicy": {
        "MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 25},
        "RollbackMaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 4},
    },
    "WaitIntervalInSeconds": 600,
    "AutoRollbackConfiguration": [{"AlarmName": "training-throughput"}],
}


def test_a_group_renders_all_that_was_given(slurm: dict[str, Any]) -> None:
    head, workers, others = cluster_of(slurm)["InstanceGroups"]

    assert "InstanceStorageConfigs" not in head, "a group's own mounts replace those of the cluster"
    assert workers["MinInstanceCount"] == 14
    assert [list(config) for config in workers["InstanceStorageConfigs"]] == [
        ["EbsVolumeConfig"],
        ["EbsVolumeConfig"],
        ["FsxLustreConfig"],
        ["FsxOpenZfsConfig"],
    ]
    assert workers["InstanceStorageConfigs"][:2] == [
        {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": KEY_ARN}},
        {"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": KEY_ARN}},
    ]
    assert workers["NetworkInterface"] == {"InterfaceType": "efa-only"}
    assert workers["LifeCycleConfig"]["OnCreate"] == "on_create.sh"
    assert others["InstanceRequirements"] == {"InstanceTypes": ["ml.g6e.48xlarge", "ml.g5.48xlarge"]}
    assert "InstanceType" not in others
    assert others["CapacityRequirements"] == {"OnDemand": {}}
    assert others["OverrideVpcConfig"] == {
        "SecurityGroupIds": ["sg-1123456789abcdef0"],
        "Subnets": ["subnet-1123456789abcdef0"],
    }


def test_a_cluster_waits_for_the_routes_of_a_groups_own_subnets(tmp_path: Path) -> None:
    stack = new_stack()
    network = network_of(stack)
    other = ec2.PrivateSubnet(
        stack, "Nodes2", vpc_id="vpc-0123456789abcdef0", availability_zone="us-west-2b", cidr_block="10.1.64.0/20"
    )
    other.add_default_nat_route("nat-0123456789abcdef0")
    HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        orchestrator=SlurmOrchestrator(),
        instance_groups=[
            InstanceGroup(name="head", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller"),
            InstanceGroup(
                name="others",
                instance_type="ml.g5.8xlarge",
                instance_count=1,
                node_type="Compute",
                partition="any",
                override_vpc=OverrideVpc(subnets=[other], security_groups=[network.security_group]),
            ),
        ],
        lifecycle=bundle_of(stack, tmp_path),
    )

    [cluster] = of_type(dict(assertions.Template.from_stack(stack).to_json()), "AWS::SageMaker::Cluster").values()

    assert any(name.startswith("Nodes2DefaultRoute") for name in cluster["DependsOn"])


def test_the_role_may_what_the_groups_have_a_use_for(slurm: dict[str, Any]) -> None:
    policies = of_type(slurm, "AWS::IAM::Policy").values()
    (statements,) = (
        item["Properties"]["PolicyDocument"]["Statement"] for item in policies if "LookAtTheNetwork" in json.dumps(item)
    )
    found = {json.dumps(item["Action"]): json.dumps(item["Resource"]) for item in statements}

    assert found['"fsx:DescribeFileSystems"'] == '"*"'
    assert found['["kms:CreateGrant", "kms:DescribeKey"]'] == json.dumps(KEY_ARN)
    assert "secret:accounting" in found['["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]']
    made = found['"ec2:CreateNetworkInterface"']
    assert all(
        name in made for name in ("subnet-0123456789abcdef0", "subnet-1123456789abcdef0", "sg-1123456789abcdef0")
    )


def test_spot_labels_and_taints_of_a_group_on_eks(eks: dict[str, Any]) -> None:
    group, patched = cluster_of(eks)["InstanceGroups"]

    assert patched["AutoPatchConfig"] == {"PatchingStrategy": "WhenIdle"}
    assert group["CapacityRequirements"] == {"Spot": {}}
    assert group["KubernetesConfig"] == {
        "Labels": {"role": "evaluation"},
        "Taints": [{"Key": "purpose", "Value": "evaluation", "Effect": "NoSchedule"}],
    }
    assert group["ScheduledUpdateConfig"]["DeploymentConfig"] == DEPLOYMENT
    assert "cloudwatch:DescribeAlarms" in json.dumps(of_type(eks, "AWS::IAM::Policy"))
    assert "SlurmConfig" not in group


@pytest.mark.parametrize("shape", ["slurm", "eks", "restricted", "extended"])
def test_cfn_lint_finds_nothing(shape: str, request: pytest.FixtureRequest) -> None:
    from cfnlint.api import ManualArgs, lint

    template = json.dumps(request.getfixturevalue(shape))
    found = [(item.rule.id, str(item)) for item in lint(template, config=ManualArgs(regions=["us-west-2"]))]

    # W3005: the CDK expands a dependency on a construct to all in it, also to what a Ref names anyway
    assert [text for code, text in found if code != "W3005"] == []


@pytest.mark.parametrize(("types", "given"), [({}, "None and instance_types []"), ({"both": True}, "'ml.m5.large'")])
def test_rejects_a_group_without_one_way_to_its_type(types: dict[str, bool], given: str) -> None:
    both = {"instance_type": "ml.m5.large", "instance_types": ["ml.m5.xlarge"]} if types else {}
    with pytest.raises(ValueError, match=r"instance group 'x': got instance_type .*; allowed: exactly one") as caught:
        InstanceGroup(name="x", instance_count=1, **both)  # type: ignore[arg-type]
    assert given in str(caught.value)


def test_rejects_a_batch_of_the_rollback_alone() -> None:
    with pytest.raises(ValueError, match="got rollback_maximum_batch_size alone"):
        Deployment(rollback_maximum_batch_size=BatchSize.instances(1))


@pytest.mark.parametrize("member", ["DrainPolicy", "IdleWaitWindowInSeconds"])
def test_what_the_api_has_and_cloudformation_refuses_is_still_refused(member: str) -> None:
    """When this fails, CloudFormation has caught up, and AutoPatch can have it."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", "AWS::SageMaker::Cluster").schema
    patch = schema["definitions"]["AutoPatchConfig"]

    assert member not in patch["properties"]
    assert patch["additionalProperties"] is False
    assert patch["properties"]["PatchingStrategy"]["enum"] == ["WhenIdle", "WhenAllIdle"]
