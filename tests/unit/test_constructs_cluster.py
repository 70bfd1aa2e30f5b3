"""The constructs together: what a cluster needs is there, and there before the cluster."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_iam as iam

from holdfast_constructs import (
    DataBucket,
    DataRepository,
    EventLogGroup,
    HyperPodCluster,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    LustreFileSystem,
    LustreMount,
)

GROUPS = [
    InstanceGroup(name="controller", instance_type="ml.m5.xlarge", instance_count=1, node_type="Controller"),
    InstanceGroup(
        name="workers",
        instance_type="ml.p5.48xlarge",
        instance_count=5,
        node_type="Compute",
        partition="dev",
        volume_gib=500,
    ),
]


def make(stack: cdk.Stack, scripts: Path, *, policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN) -> HyperPodCluster:
    network = HyperPodNetwork(
        stack,
        "Network",
        cidr="10.1.0.0/16",
        availability_zone="us-west-2a",
        instance_groups=GROUPS,
        removal_policy=policy,
    )
    data = DataBucket(stack, "Data", removal_policy=policy)
    lustre = LustreFileSystem(
        stack,
        "Lustre",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=1200,
        per_unit_storage_throughput=250,
        data_repositories=[
            DataRepository(name="a", bucket=data.bucket, prefix="a", file_system_path="/a", auto_import=["NEW"]),
            DataRepository(name="b", bucket=data.bucket, prefix="b", file_system_path="/b", auto_export=["CHANGED"]),
        ],
        removal_policy=policy,
    )
    EventLogGroup(stack, "Events", cluster_name="demo", removal_policy=policy)
    bundle = LifecycleBundle(stack, "Lifecycle", name="demo", sources=[scripts], config={})
    return HyperPodCluster(
        stack,
        "Cluster",
        cluster_name="demo",
        network=network,
        instance_groups=GROUPS,
        lifecycle=bundle,
        lustre=LustreMount(file_system=lustre),
        tags={"team": "training"},
    )


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "on_create.sh"
    path.write_text("#!/bin/bash\n")
    return path


@pytest.fixture(scope="module")
def template(scripts: Path) -> assertions.Template:
    stack = new_stack()
    make(stack, scripts)
    return assertions.Template.from_stack(stack)


@pytest.fixture(scope="module")
def resources(template: assertions.Template) -> dict[str, Any]:
    found: dict[str, Any] = template.to_json()["Resources"]
    return found


def of_type(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: resource for name, resource in resources.items() if resource["Type"] == kind}


def test_the_security_group_lets_its_members_talk_by_reference_in_and_out(resources: dict[str, Any]) -> None:
    (group,) = of_type(resources, "AWS::EC2::SecurityGroup")
    itself = {"Fn::GetAtt": [group, "GroupId"]}
    ingress = [rule["Properties"] for rule in of_type(resources, "AWS::EC2::SecurityGroupIngress").values()]
    egress = [rule["Properties"] for rule in of_type(resources, "AWS::EC2::SecurityGroupEgress").values()]
    written_into_the_group = resources[group]["Properties"]["SecurityGroupEgress"]

    assert [(rule["IpProtocol"], rule["SourceSecurityGroupId"]) for rule in ingress] == [("-1", itself)]
    assert [(rule["IpProtocol"], rule["DestinationSecurityGroupId"]) for rule in egress] == [("-1", itself)]
    assert [(rule["IpProtocol"], rule["CidrIp"]) for rule in written_into_the_group] == [("-1", "0.0.0.0/0")]


def test_the_nodes_subnet_is_private_and_the_first_half_of_the_network(resources: dict[str, Any]) -> None:
    subnets = [subnet["Properties"] for subnet in of_type(resources, "AWS::EC2::Subnet").values()]

    assert [(subnet["CidrBlock"], subnet["MapPublicIpOnLaunch"]) for subnet in subnets] == [
        ("10.1.0.0/17", False),
        ("10.1.128.0/28", False),
    ]
    assert {subnet["AvailabilityZone"] for subnet in subnets} == {"us-west-2a"}


def test_s3_is_reached_through_a_gateway_endpoint_on_the_nodes_route_table(resources: dict[str, Any]) -> None:
    (endpoint,) = of_type(resources, "AWS::EC2::VPCEndpoint").values()

    assert endpoint["Properties"]["VpcEndpointType"] == "Gateway"
    assert {"Ref": "NetworkNodesSubnet1RouteTableC38D3044"} in endpoint["Properties"]["RouteTableIds"]


def test_without_egress_nothing_leads_to_the_internet() -> None:
    stack = new_stack()
    HyperPodNetwork(
        stack,
        "Network",
        cidr="10.1.0.0/16",
        availability_zone="us-west-2a",
        instance_groups=GROUPS,
        egress="none",
    )
    template = assertions.Template.from_stack(stack)

    for kind in ("NatGateway", "InternetGateway", "EIP", "Route"):
        template.resource_count_is(f"AWS::EC2::{kind}", 0)
    template.resource_count_is("AWS::EC2::VPCEndpoint", 1)
    assert "0.0.0.0/0" not in json.dumps(template.to_json())


def test_instance_groups_carry_slurm_storage_and_lifecycle(resources: dict[str, Any]) -> None:
    (cluster,) = of_type(resources, "AWS::SageMaker::Cluster").values()
    controller, workers = cluster["Properties"]["InstanceGroups"]

    assert cluster["Properties"]["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": "Managed"}}
    assert cluster["Properties"]["NodeRecovery"] == "Automatic"
    assert cluster["Properties"]["Tags"] == [{"Key": "team", "Value": "training"}]
    assert controller["SlurmConfig"] == {"NodeType": "Controller"}
    assert workers["SlurmConfig"] == {"NodeType": "Compute", "PartitionNames": ["dev"]}
    assert workers["InstanceCount"] == 5
    assert workers["LifeCycleConfig"]["OnCreate"] == "on_create.sh"
    assert [next(iter(config)) for config in workers["InstanceStorageConfigs"]] == [
        "EbsVolumeConfig",
        "FsxLustreConfig",
    ]
    assert [next(iter(config)) for config in controller["InstanceStorageConfigs"]] == ["FsxLustreConfig"]


def test_the_cluster_waits_for_all_that_nodes_need_at_boot(resources: dict[str, Any]) -> None:
    (cluster,) = of_type(resources, "AWS::SageMaker::Cluster").values()
    needed = {
        "Custom::CDKBucketDeployment",
        "AWS::FSx::DataRepositoryAssociation",
        "AWS::EC2::VPCEndpoint",
        "AWS::EC2::Route",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::IAM::Policy",
    }

    assert needed <= {resources[name]["Type"] for name in cluster["DependsOn"]}


def test_a_changed_script_changes_the_place_of_the_lifecycle_scripts(scripts: Path, tmp_path: Path) -> None:
    other = tmp_path / "on_create.sh"
    other.write_text("#!/bin/bash\ntrue\n")
    stack, changed = new_stack(), new_stack()
    make(stack, scripts)
    make(changed, other)

    uris = [json.dumps(source_uris(assertions.Template.from_stack(item))) for item in (stack, changed)]
    assert uris[0] != uris[1]


def source_uris(template: assertions.Template) -> list[Any]:
    (cluster,) = template.find_resources("AWS::SageMaker::Cluster").values()
    return [group["LifeCycleConfig"]["SourceS3Uri"] for group in cluster["Properties"]["InstanceGroups"]]


def test_associations_are_made_one_after_the_other(resources: dict[str, Any]) -> None:
    first, second = of_type(resources, "AWS::FSx::DataRepositoryAssociation").items()

    assert first[0] in second[1]["DependsOn"]
    assert first[1]["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW"]}}
    assert second[1]["Properties"]["S3"] == {"AutoExportPolicy": {"Events": ["CHANGED"]}}
    assert (
        first[1]["Properties"]["BatchImportMetaDataOnCreate"],
        second[1]["Properties"]["BatchImportMetaDataOnCreate"],
    ) == (
        True,
        False,
    )


def test_what_holds_data_and_what_it_stands_on_is_retained_by_default(resources: dict[str, Any]) -> None:
    retained = {resource["Type"] for resource in resources.values() if resource.get("DeletionPolicy") == "Retain"}

    assert retained == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::FSx::DataRepositoryAssociation",
        "AWS::FSx::FileSystem",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
    }


def test_nothing_is_retained_when_all_shall_go(scripts: Path) -> None:
    stack = new_stack()
    make(stack, scripts, policy=cdk.RemovalPolicy.DESTROY)
    template = assertions.Template.from_stack(stack)

    kept = [name for name, item in template.to_json()["Resources"].items() if item.get("DeletionPolicy") == "Retain"]
    assert kept == []
    template.resource_count_is("Custom::S3AutoDeleteObjects", 2)


def test_every_bucket_is_encrypted_private_and_takes_tls_only(template: assertions.Template) -> None:
    buckets = template.find_resources("AWS::S3::Bucket")
    policies = template.find_resources("AWS::S3::BucketPolicy")

    assert len(buckets) == len(policies) == 2
    for bucket in buckets.values():
        assert bucket["Properties"]["BucketEncryption"]
        assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    for policy in policies.values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        assert {"Bool": {"aws:SecureTransport": "false"}} in [item.get("Condition") for item in statements]


def test_the_role_is_trusted_by_sagemaker_and_may_no_more_than_named(resources: dict[str, Any]) -> None:
    (role,) = (item for name, item in of_type(resources, "AWS::IAM::Role").items() if name.startswith("ClusterRole"))
    (policy,) = (
        item for name, item in of_type(resources, "AWS::IAM::Policy").items() if name.startswith("ClusterRole")
    )
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    actions = {action for item in statements for action in as_list(item["Action"])}
    anywhere = {action for item in statements if item["Resource"] == "*" for action in as_list(item["Action"])}

    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {
        "Service": "sagemaker.amazonaws.com"
    }
    assert "AmazonSageMakerClusterInstanceRolePolicy" in json.dumps(role["Properties"]["ManagedPolicyArns"])
    assert {"ec2:CreateNetworkInterface", "ec2:DescribeSubnets", "fsx:DescribeFileSystems", "s3:GetObject*"} <= actions
    assert not {action for action in actions if action.endswith(":*") or action == "*"}
    assert all(":Describe" in action for action in anywhere)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_grants_name_the_cluster_also_when_it_is_imported() -> None:
    stack = new_stack()
    arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdef"
    cluster = HyperPodCluster.from_cluster_arn(stack, "Imported", cluster_arn=arn)
    role = iam.Role(stack, "Operator", assumed_by=iam.AccountRootPrincipal())
    cluster.grant_manage_nodes(role)
    cluster.grant_read(role)

    (policy,) = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    assert {item["Resource"] for item in statements} == {arn}
    assert "sagemaker:BatchReplaceClusterNodes" in statements[0]["Action"]
    assert "sagemaker:ListClusterNodes" in statements[1]["Action"]


def test_the_underlying_resource_can_be_overridden(scripts: Path) -> None:
    stack = new_stack()
    resource = make(stack, scripts).node.default_child
    assert isinstance(resource, cdk.CfnResource)
    resource.add_property_override("NodeProvisioningMode", "Continuous")

    assertions.Template.from_stack(stack).has_resource_properties(
        "AWS::SageMaker::Cluster", {"NodeProvisioningMode": "Continuous"}
    )


def test_rejects_groups_that_no_slurm_cluster_can_have(scripts: Path) -> None:
    twice = [GROUPS[0], GROUPS[0]]
    with pytest.raises(ValueError, match="got controller more than once; allowed: unique names"):
        HyperPodCluster(
            new_stack(),
            "Cluster",
            cluster_name="demo",
            network=None,  # type: ignore[arg-type]  # refused before it is looked at
            instance_groups=twice,
            lifecycle=None,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize(
    ("node_type", "partition", "given"), [("Compute", None, "None"), ("Controller", "dev", "'dev'")]
)
def test_rejects_a_partition_in_the_wrong_place(node_type: Any, partition: str | None, given: str) -> None:
    with pytest.raises(ValueError) as caught:
        InstanceGroup(
            name="x", instance_type="ml.m5.xlarge", instance_count=1, node_type=node_type, partition=partition
        )
    assert str(caught.value) == (
        f"instance group 'x': got partition {given} on node type {node_type}; "
        "allowed: a partition on Compute groups and on no other"
    )


def test_rejects_an_instance_type_that_hyperpod_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"instance group 'x': got instance type 'p5'; allowed: a type of"):
        InstanceGroup(name="x", instance_type="p5", instance_count=1, node_type="Login")
