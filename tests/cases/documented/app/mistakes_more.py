"""A second set of mistakes in apps, from AWS's documentation alone."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from parts import App, case, controller, eks, lustre, plain, pods, private_vpc, self_referencing_group, slurm, system
from parts import workers as compute

from holdfast_constructs import (
    BatchSize,
    Deployment,
    EbsVolume,
    HyperPodNetwork,
    InstanceQuota,
    LustreFileSystem,
    LustreMount,
    ScheduledUpdate,
    TaskGovernance,
    Team,
)

APPS: dict[str, App] = {}
GUIDE = "sagemaker/latest/dg/"
FSX = "fsx/latest/APIReference/"


def _file_system(stack: cdk.Stack, *, subnets: int = 1, lustre_configuration: Any = None, **changes: Any) -> None:
    vpc = private_vpc(stack, availability_zones=["us-west-2a", "us-west-2b"][:subnets])
    group = self_referencing_group(stack, vpc)
    place = {
        "subnet_ids": [each.subnet_id for each in vpc.private_subnets],
        "security_group_ids": [group.security_group_id],
    }
    if lustre_configuration:
        changes["lustre_configuration"] = lustre_configuration
    lustre(stack, "Lustre", **place, **changes).node.add_dependency(group)
    plain(stack, vpc=vpc, group=group, subnets=vpc.private_subnets[:1])


@case(APPS, page=f"{FSX}API_CreateFileSystem.html", at="SubnetIds")
def file_system_in_two_subnets(stack: cdk.Stack) -> None:
    _file_system(stack, subnets=2)


@case(APPS, page=f"{FSX}API_CreateFileSystemLustreConfiguration.html", at="WeeklyMaintenanceStartTime")
def maintenance_on_the_eighth_day(stack: cdk.Stack) -> None:
    settings = {"deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250}
    _file_system(stack, lustre_configuration={**settings, "weeklyMaintenanceStartTime": "8:03:00"})


@case(APPS, page=f"{FSX}API_CreateFileSystemLustreConfiguration.html", at="AutomaticBackupRetentionDays")
def backups_for_a_year(stack: cdk.Stack) -> None:
    settings = {"deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250}
    _file_system(stack, lustre_configuration={**settings, "automaticBackupRetentionDays": 365})


@case(APPS, page=f"{FSX}API_CreateFileSystemLustreConfiguration.html", at="PerUnitStorageThroughput")
def throughput_of_a_scratch_file_system(stack: cdk.Stack) -> None:
    _file_system(stack, lustre_configuration={"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": 200})


@case(APPS, page=f"{FSX}API_CreateFileSystemLustreMetadataConfiguration.html", at="MetadataConfiguration")
def metadata_of_persistent_1(stack: cdk.Stack) -> None:
    settings = {"deploymentType": "PERSISTENT_1", "perUnitStorageThroughput": 100}
    iops = {"mode": "USER_PROVISIONED", "iops": 3000}
    _file_system(stack, lustre_configuration={**settings, "metadataConfiguration": iops})


@case(APPS, page="AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html", at="AlarmActions")
def alarm_to_a_topic_of_another_region(stack: cdk.Stack) -> None:
    plain(stack)
    cloudwatch.CfnAlarm(
        stack,
        "Full",
        comparison_operator="LessThanThreshold",
        evaluation_periods=3,
        namespace="AWS/FSx",
        metric_name="FreeDataStorageCapacity",
        dimensions=[{"name": "FileSystemId", "value": "fs-0123456789abcdef0"}],
        statistic="Minimum",
        period=300,
        threshold=1e12,
        alarm_actions=["arn:aws:sns:us-east-1:111122223333:oncall"],
    )


@case(APPS, page="AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html", at="RetentionInDays")
def logs_for_six_weeks(stack: cdk.Stack) -> None:
    plain(stack)
    logs.CfnLogGroup(stack, "Log", log_group_name="/research/jobs", retention_in_days=45)


@case(APPS, page="eks/latest/userguide/workloads-add-ons-available-eks.html", at="AddonName")
def add_on_that_does_not_exist(stack: cdk.Stack) -> None:
    control, cluster = eks(stack)
    addon = eks_l1.CfnAddon(stack, "Fsx", cluster_name=control.cluster_name, addon_name="aws-fsx-lustre-csi-driver")
    addon.node.add_dependency(cluster)


@case(APPS, page="eks/latest/userguide/creating-access-entries.html", at="KubernetesGroups")
def entry_in_a_group_of_the_system(stack: cdk.Stack) -> None:
    control, _ = eks(stack)
    eks_l1.CfnAccessEntry(
        stack,
        "Entry",
        cluster_name=control.cluster_name,
        principal_arn="arn:aws:iam::111122223333:role/Administrators",
        kubernetes_groups=["system:masters"],
    )


@case(
    APPS,
    page="eks/latest/userguide/pod-id-role.html",
    at="AssumeRolePolicyDocument|RoleArn",
)
def pod_role_without_session_tags(stack: cdk.Stack) -> None:
    control, _ = eks(stack)
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com"))
    eks_l1.CfnPodIdentityAssociation(
        stack,
        "Identity",
        cluster_name=control.cluster_name,
        namespace="jobs",
        service_account="trainer",
        role_arn=role.role_arn,
    )


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html", at="mount_path|MountPath")
def mount_at_a_relative_path(stack: cdk.Stack) -> None:
    existing = LustreFileSystem.from_attributes(
        stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx4abcd"
    )
    slurm(stack, lustre=LustreMount(file_system=existing, mount_path="fsx"))


@case(APPS, page="sagemaker/latest/APIReference/API_ComputeQuotaTarget.html", at="weight|FairShareWeight")
def weight_above_a_hundred(stack: cdk.Stack) -> None:
    control, cluster = eks(stack)
    quota = [InstanceQuota(instance_type="ml.p5.48xlarge", instance_count=2)]
    teams = [Team(name="a", weight=150, quota=quota)]
    TaskGovernance(stack, "Governance", eks_cluster=control, cluster=cluster, name="teams", policy=False, teams=teams)


@case(APPS, page="sagemaker/latest/APIReference/API_CapacitySizeConfig.html", at="maximum_batch_size|MaximumBatchSize")
def batch_of_more_than_the_group(stack: cdk.Stack) -> None:
    deployment = Deployment(maximum_batch_size=BatchSize("CAPACITY_PERCENTAGE", 150))
    update = ScheduledUpdate(schedule_expression="cron(0 3 ? * SUN *)", deployment=deployment)
    eks(stack, system(), pods(scheduled_update=update))


@case(APPS, page="sagemaker/latest/APIReference/API_ClusterEbsVolumeConfig.html", at="size_gib|VolumeSizeInGB")
def volume_above_the_maximum(stack: cdk.Stack) -> None:
    slurm(stack, controller(), compute(volumes=[EbsVolume(size_gib=20000)]))


@case(APPS, page="sagemaker/latest/APIReference/API_ClusterOrchestrator.html", at="Orchestrator")
def two_orchestrators(stack: cdk.Stack) -> None:
    kubernetes = {"clusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/platform"}
    plain(stack, orchestrator={"slurm": {"slurmConfigStrategy": "Managed"}, "eks": kubernetes})


@case(APPS, page="sns/latest/dg/sns-access-policy-use-cases.html", at="Targets|TopicPolicy|Topics|Topic")
def events_to_a_topic_that_does_not_take_them(stack: cdk.Stack) -> None:
    plain(stack)
    topic = sns.CfnTopic(stack, "Topic")
    events.CfnRule(
        stack,
        "Rule",
        event_pattern={"source": ["aws.sagemaker"], "detail-type": ["SageMaker HyperPod Cluster Node Health Event"]},
        targets=[{"id": "topic", "arn": topic.attr_topic_arn}],
    )


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites.html", at="subnet|Subnets|VpcConfig")
def network_with_a_public_subnet(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    place = HyperPodNetwork.from_attributes(
        stack,
        "Place",
        vpc=vpc,
        subnet=vpc.public_subnets[0],
        security_group=self_referencing_group(stack, vpc),
        s3_gateway_endpoint=True,
    )
    slurm(stack, network=place)
