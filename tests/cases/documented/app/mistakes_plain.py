"""Mistakes in apps of the CDK's own constructs, from AWS's documentation alone."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from parts import App, case, lustre, node_role, plain, private_vpc, script_bucket, self_referencing_group

APPS: dict[str, App] = {}
GUIDE = "sagemaker/latest/dg/"


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-eks-prerequisites.html", at="Subnets|VpcConfig|subnet")
def nodes_in_a_public_subnet(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    plain(stack, vpc=vpc, subnets=vpc.public_subnets)


def persistent_2(stack: cdk.Stack, **settings: Any) -> None:
    vpc = private_vpc(stack)
    fsx.LustreFileSystem(
        stack,
        "Lustre",
        vpc=vpc,
        vpc_subnet=vpc.private_subnets[0],
        storage_capacity_gib=4800,
        lustre_configuration=fsx.LustreConfiguration(deployment_type=fsx.LustreDeploymentType.PERSISTENT_2, **settings),
    )
    plain(stack, vpc=vpc)


@case(APPS, page="fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html", at="ImportPath")
def import_path_of_persistent_2(stack: cdk.Stack) -> None:
    persistent_2(stack, per_unit_storage_throughput=250, import_path="s3://sagemaker-research/data")


@case(APPS, page="fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html", at="PerUnitStorageThroughput")
def persistent_without_throughput(stack: cdk.Stack) -> None:
    persistent_2(stack)


@case(APPS, page="sagemaker/latest/APIReference/API_ClusterLifeCycleConfig.html", at="SourceS3Uri")
def arn_in_the_uri_of_scripts(stack: cdk.Stack) -> None:
    scripts = script_bucket(stack)
    plain(
        stack,
        workers={"lifeCycleConfig": {"sourceS3Uri": f"s3://{scripts.bucket_arn}/v1", "onInitComplete": "extend.sh"}},
    )


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html", at="MountName|DnsName")
def mount_name_of_another_file_system(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    place = {"subnet_ids": [vpc.private_subnets[0].subnet_id], "security_group_ids": [group.security_group_id]}
    first, second = lustre(stack, "First", **place), lustre(stack, "Second", **place)
    for each in (first, second):
        each.node.add_dependency(group)
    mount = {"dnsName": first.attr_dns_name, "mountName": second.attr_lustre_mount_name, "mountPath": "/fsx"}
    plain(stack, vpc=vpc, group=group, workers={"instanceStorageConfigs": [{"fsxLustreConfig": mount}]})


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites.html", at="OverrideVpcConfig|VpcConfig")
def override_without_the_vpc_of_the_cluster(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    override = {"securityGroupIds": [group.security_group_id], "subnets": [vpc.private_subnets[0].subnet_id]}
    plain(stack, vpc=vpc, group=group, vpc_config=None, workers={"overrideVpcConfig": override})


@case(
    APPS,
    page="AmazonS3/latest/userguide/UsingKMSEncryption.html",
    at="KMSMasterKeyID|KmsKey|Policies|PolicyDocument|ExecutionRole|SourceS3Uri",
)
def scripts_under_a_key_that_nodes_may_not_use(stack: cdk.Stack) -> None:
    scripts = script_bucket(stack, encryption=s3.BucketEncryption.KMS, encryption_key=kms.Key(stack, "Key"))
    source = {"sourceS3Uri": f"s3://{scripts.bucket_name}/v1", "onInitComplete": "extend.sh"}
    plain(stack, workers={"lifeCycleConfig": source})


@case(APPS, page="vpc/latest/privatelink/gateway-endpoints.html", at="Subnets|RouteTableIds|VPCEndpoint|VpcConfig")
def no_way_to_s3(stack: cdk.Stack) -> None:
    isolated = ec2.SubnetConfiguration(name="nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
    vpc = private_vpc(stack, nat_gateways=0, gateway_endpoints={}, subnet_configuration=[isolated])
    scripts = script_bucket(stack)
    source = {"sourceS3Uri": f"s3://{scripts.bucket_name}/v1", "onInitComplete": "extend.sh"}
    plain(stack, vpc=vpc, subnets=vpc.isolated_subnets, workers={"lifeCycleConfig": source})


@case(
    APPS,
    page=f"{GUIDE}sagemaker-hyperpod-prerequisites-iam.html",
    at="Policies|ExecutionRole|ManagedPolicyArns|PolicyDocument",
)
def role_without_network_interfaces(stack: cdk.Stack) -> None:
    plain(stack, role=node_role(stack, network=False))


@case(APPS, page="fsx/latest/APIReference/API_CreateFileSystem.html", at="StorageCapacity")
def capacity_of_intelligent_tiering(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    system = lustre(
        stack,
        "Lustre",
        subnet_ids=[vpc.private_subnets[0].subnet_id],
        security_group_ids=[group.security_group_id],
        storage_type="INTELLIGENT_TIERING",
        lustre_configuration={
            "deploymentType": "PERSISTENT_2",
            "throughputCapacity": 4000,
            "dataReadCacheConfiguration": {"sizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"},
            "metadataConfiguration": {"mode": "USER_PROVISIONED", "iops": 6000},
        },
    )
    system.node.add_dependency(group)
    plain(stack, vpc=vpc, group=group)
