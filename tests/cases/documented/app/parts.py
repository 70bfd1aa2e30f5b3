"""What the apps of this folder share: a stack in us-west-2, and clusters whose parts a case replaces."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker

from holdfast_constructs import (
    EksOrchestrator,
    HyperPodCluster,
    HyperPodEks,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    SlurmOrchestrator,
)

SCRIPTS = Path(__file__).parent / "on_create.sh"
Build = Callable[[cdk.Stack], object]


@dataclass(frozen=True, kw_only=True)
class App:
    """One app: how it is built, its page below docs.aws.amazon.com, and the property at fault (none: it is clean)."""

    build: Build
    page: str
    at: str = ""
    region: str = "us-west-2"


def case(apps: dict[str, App], *, page: str, at: str = "") -> Callable[[Build], Build]:
    """Register a function that fills a stack, under its name."""

    def register(build: Build) -> Build:
        apps[build.__name__] = App(build=build, page=page, at=at)
        return build

    return register


def controller(**changes: Any) -> InstanceGroup:
    return InstanceGroup(
        **{"name": "head", "instance_type": "ml.m5.2xlarge", "instance_count": 1, "node_type": "Controller", **changes}
    )


def workers(**changes: Any) -> InstanceGroup:
    settings: dict[str, Any] = {"name": "workers", "instance_type": "ml.p5.48xlarge", "instance_count": 4}
    return InstanceGroup(**{**settings, "node_type": "Compute", "partition": "train", **changes})


def system(**changes: Any) -> InstanceGroup:
    return InstanceGroup(**{"name": "system", "instance_type": "ml.m5.4xlarge", "instance_count": 2, **changes})


def pods(**changes: Any) -> InstanceGroup:
    return workers(node_type=None, partition=None, **changes)


def network(stack: cdk.Stack, **changes: Any) -> HyperPodNetwork:
    settings: dict[str, Any] = {"cidr": "10.1.0.0/16", "availability_zone": "us-west-2a"}
    return HyperPodNetwork(stack, "Network", **{**settings, **changes})


def slurm(stack: cdk.Stack, *groups: InstanceGroup, **changes: Any) -> HyperPodCluster:
    """Build a Slurm cluster of Holdfast's constructs."""
    chosen = list(groups) or [controller(), workers()]
    place = changes.pop("network", None) or network(stack)
    orchestrator = changes.pop("orchestrator", None) or SlurmOrchestrator()
    return HyperPodCluster(
        stack, "Cluster", network=place, orchestrator=orchestrator, instance_groups=chosen, **changes
    )


def eks(stack: cdk.Stack, *groups: InstanceGroup, **changes: Any) -> tuple[HyperPodEks, HyperPodCluster]:
    """Build a cluster under EKS of Holdfast's constructs."""
    chosen = list(groups) or [system(), pods()]
    place = network(
        stack,
        orchestrator="eks",
        second_availability_zone=changes.pop("second_availability_zone", "us-west-2b"),
    )
    control = HyperPodEks(
        stack,
        "Eks",
        cluster_name="platform",
        network=place,
        kubernetes_version=changes.pop("kubernetes_version", "1.34"),
        public_access_cidrs=changes.pop("public_access_cidrs", ()),
        instance_types=[kind for group in chosen for kind in group.types],
    )
    lifecycle = LifecycleBundle(stack, "Lifecycle", sources=[SCRIPTS], config={}, on_create="on_create.sh")
    settings = {"continuous_provisioning": True, "lifecycle": lifecycle, **changes}
    cluster = HyperPodCluster(
        stack,
        "Cluster",
        network=place,
        orchestrator=EksOrchestrator(control_plane=control),
        instance_groups=chosen,
        **settings,
    )
    return control, cluster


def node_role(stack: cdk.Stack, *, principal: str = "sagemaker.amazonaws.com", network: bool = True) -> iam.Role:
    """A role of nodes as sagemaker-hyperpod-prerequisites-iam.html describes it."""
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal(principal))
    role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSageMakerClusterInstanceRolePolicy"))
    if network:
        actions = ("CreateNetworkInterface", "CreateNetworkInterfacePermission", "DeleteNetworkInterface")
        more = ("DeleteNetworkInterfacePermission", "DescribeNetworkInterfaces", "DescribeVpcs", "DescribeSubnets")
        rest = ("DescribeDhcpOptions", "DescribeSecurityGroups", "DetachNetworkInterface")
        role.add_to_policy(
            iam.PolicyStatement(actions=[f"ec2:{name}" for name in (*actions, *more, *rest)], resources=["*"])
        )
        role.add_to_policy(
            iam.PolicyStatement(actions=["ec2:CreateTags"], resources=["arn:aws:ec2:*:*:network-interface/*"])
        )
    return role


def self_referencing_group(stack: cdk.Stack, vpc: ec2.IVpc) -> ec2.SecurityGroup:
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc, allow_all_outbound=False)
    group.add_ingress_rule(group, ec2.Port.all_traffic())
    group.add_egress_rule(group, ec2.Port.all_traffic())
    group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443))
    return group


def private_vpc(stack: cdk.Stack, **changes: Any) -> ec2.Vpc:
    settings: dict[str, Any] = {"availability_zones": ["us-west-2a"], "nat_gateways": 1}
    settings["gateway_endpoints"] = {"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)}
    return ec2.Vpc(stack, "Vpc", **{**settings, **changes})


def plain(stack: cdk.Stack, **changes: Any) -> sagemaker.CfnCluster:
    """Build a Slurm cluster of the CDK's own constructs, in a given `vpc`, `subnets` and `group`, with a `role`."""
    vpc = changes.pop("vpc", None) or private_vpc(stack)
    role = changes.pop("role", None) or node_role(stack)
    security = changes.pop("group", None) or self_referencing_group(stack, vpc)
    subnets = changes.pop("subnets", None) or vpc.private_subnets
    head: dict[str, Any] = {"instanceGroupName": "head", "instanceType": "ml.m5.2xlarge", "instanceCount": 1}
    head["slurmConfig"] = {"nodeType": "Controller"}
    nodes: dict[str, Any] = {"instanceGroupName": "workers", "instanceType": "ml.p5.48xlarge", "instanceCount": 4}
    nodes["slurmConfig"] = {"nodeType": "Compute", "partitionNames": ["train"]}
    nodes.update(changes.pop("workers", {}))
    settings: dict[str, Any] = {
        "vpc_config": {
            "securityGroupIds": [security.security_group_id],
            "subnets": [subnet.subnet_id for subnet in subnets],
        },
        "orchestrator": {"slurm": {"slurmConfigStrategy": "Managed"}},
        "node_recovery": "Automatic",
        "instance_groups": [{**each, "executionRole": role.role_arn} for each in (head, nodes)],
    }
    cluster = sagemaker.CfnCluster(stack, "Cluster", **{**settings, **changes})
    cluster.node.add_dependency(vpc, security, role)
    return cluster


def lustre(stack: cdk.Stack, construct_id: str, **changes: Any) -> fsx.CfnFileSystem:
    """Build a file system in a private subnet; its security group allows Lustre's ports within itself."""
    settings: dict[str, Any] = {"file_system_type": "LUSTRE", "file_system_type_version": "2.15"}
    settings["storage_capacity"] = 4800
    settings["lustre_configuration"] = {"deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250}
    system_of_files = fsx.CfnFileSystem(stack, construct_id, **{**settings, **changes})
    system_of_files.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    return system_of_files


def script_bucket(stack: cdk.Stack, **settings: Any) -> s3.Bucket:
    return s3.Bucket(stack, "Scripts", bucket_name="sagemaker-research-scripts", **settings)
