"""Mistakes in apps of Holdfast's constructs, from AWS's documentation alone."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from parts import App, case, controller, eks, network, node_role, pods, slurm, system, workers

from holdfast_constructs import (
    AccountingDatabase,
    AutoPatch,
    AutoScaling,
    DataBucket,
    DataRepositoryAssociation,
    HyperPodNetwork,
    InstanceQuota,
    LustreFileSystem,
    LustreMount,
    ScheduledUpdate,
    SlurmOrchestrator,
    Taint,
    TaskGovernance,
    Team,
)

APPS: dict[str, App] = {}
GUIDE = "sagemaker/latest/dg/"
GOVERNANCE = f"{GUIDE}sagemaker-hyperpod-eks-operate-console-ui-governance-policies.html"


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html", at="node_type|NodeType")
def two_controllers(stack: cdk.Stack) -> None:
    slurm(stack, controller(), controller(name="second"), workers())


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html", at="partition|PartitionNames")
def workers_without_a_partition(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(partition=None))


@case(APPS, page="sagemaker/latest/APIReference/API_CreateCluster.html", at="name|InstanceGroupName")
def one_name_for_two_groups(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(), workers(instance_count=2))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-scaling-slurm.html", at="min_instance_count|MinInstanceCount")
def minimum_above_the_count(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(min_instance_count=8), continuous_provisioning=True)


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-ami-auto-patching.html", at="auto_patch|AutoPatchConfig")
def auto_patch_under_slurm(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(auto_patch=AutoPatch(strategy="WhenIdle")))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-spot.html", at="capacity|CapacityRequirements")
def spot_under_slurm(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(instance_type="ml.g5.8xlarge", capacity="spot"))


@case(APPS, page="fsx/latest/LustreGuide/increase-storage-capacity.html", at="storage_capacity_gib|StorageCapacity")
def efa_capacity_between_the_steps(stack: cdk.Stack) -> None:
    place = network(stack)
    LustreFileSystem(
        stack,
        "Lustre",
        subnet=place.subnet,
        security_group=place.security_group,
        storage_capacity_gib=12000,
        per_unit_storage_throughput=500,
        efa=True,
        metadata_iops=6000,
    )
    slurm(stack, network=place)


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites.html", at="cidr|CidrBlock")
def network_without_room(stack: cdk.Stack) -> None:
    groups = [controller(), workers(instance_count=64)]
    slurm(stack, *groups, network=network(stack, cidr="10.1.0.0/22"))


@case(APPS, page="AWSEC2/latest/UserGuide/efa.html", at="network_interface|NetworkInterface|InterfaceType")
def efa_only_without_efa(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(instance_type="ml.g5.xlarge", network_interface="efa-only"))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites.html", at="availability_zone|AvailabilityZone")
def zone_of_another_region(stack: cdk.Stack) -> None:
    slurm(stack, network=network(stack, availability_zone="us-east-1a"))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-lifecycle-best-practices-slurm.html", at="mount_path|MountPath")
def mount_over_the_cluster_configuration(stack: cdk.Stack) -> None:
    existing = LustreFileSystem.from_attributes(
        stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx4abcd"
    )
    slurm(stack, lustre=LustreMount(file_system=existing, mount_path="/opt/ml"))


@case(
    APPS, page="fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html", at="file_system_path|FileSystemPath"
)
def folders_within_folders(stack: cdk.Stack) -> None:
    bucket = DataBucket(stack, "Data").bucket
    LustreFileSystem.from_attributes(
        stack,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        mount_name="fsx4abcd",
        data_repository_associations=[
            DataRepositoryAssociation(name="data", bucket=bucket, prefix="data", file_system_path="/data"),
            DataRepositoryAssociation(name="raw", bucket=bucket, prefix="raw", file_system_path="/data/raw"),
        ],
    )
    slurm(stack)


@case(APPS, page="fsx/latest/LustreGuide/mounting-ec2-instance.html", at="dns_name|DnsName")
def dns_name_of_another_file_system(stack: cdk.Stack) -> None:
    existing = LustreFileSystem.from_attributes(
        stack,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0fedcba9876543210.fsx.us-west-2.amazonaws.com",
        mount_name="fsx4abcd",
    )
    slurm(stack, lustre=LustreMount(file_system=existing))


@case(APPS, page="AWSEC2/latest/UserGuide/efa-start.html", at="SecurityGroupEgress|SecurityGroupIds|security_group")
def efa_group_with_the_default_egress(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"], nat_gateways=1)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    group.add_ingress_rule(group, ec2.Port.all_traffic())
    place = HyperPodNetwork.from_attributes(
        stack, "Place", vpc=vpc, subnet=vpc.private_subnets[0], security_group=group, s3_gateway_endpoint=True
    )
    slurm(stack, network=place)


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites-iam.html", at="AssumeRolePolicyDocument|Principal|role")
def role_for_ec2(stack: cdk.Stack) -> None:
    slurm(stack, role=node_role(stack, principal="ec2.amazonaws.com"))


@case(
    APPS,
    page="sagemaker/latest/APIReference/API_ClusterOrchestratorSlurmConfig.html",
    at="accounting_database|AccountingDatabase",
)
def accounting_database_without_continuous_provisioning(stack: cdk.Stack) -> None:
    secret = cdk.aws_secretsmanager.Secret.from_secret_complete_arn(
        stack, "Secret", "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
    )
    database = AccountingDatabase(endpoint="slurm.abcdefghijkl.us-west-2.rds.amazonaws.com", secret=secret)
    slurm(stack, orchestrator=SlurmOrchestrator(accounting_database=database))


@case(APPS, page="eks/latest/userguide/kubernetes-versions.html", at="kubernetes_version|kubernetes version|Version")
def kubernetes_past_its_support(stack: cdk.Stack) -> None:
    eks(stack, kubernetes_version="1.29")


@case(APPS, page="eks/latest/userguide/network-reqs.html", at="second_availability_zone|AvailabilityZone|SubnetIds")
def one_zone_for_the_control_plane(stack: cdk.Stack) -> None:
    eks(stack, second_availability_zone="us-west-2a")


def _governance(stack: cdk.Stack, *teams: Team, **settings: object) -> None:
    control, cluster = eks(stack)
    chosen = {"policy": False, **settings}
    TaskGovernance(stack, "Governance", eks_cluster=control, cluster=cluster, name="teams", teams=teams, **chosen)


@case(APPS, page=GOVERNANCE, at="instance_type|InstanceType|ComputeQuotaResources")
def quota_of_a_type_that_the_cluster_has_not(stack: cdk.Stack) -> None:
    _governance(stack, Team(name="a", quota=[InstanceQuota(instance_type="ml.p4d.24xlarge", instance_count=2)]))


@case(APPS, page=GOVERNANCE, at="instance_count|Count|ComputeQuotaResources")
def quotas_above_the_cluster(stack: cdk.Stack) -> None:
    quota = [InstanceQuota(instance_type="ml.p5.48xlarge", instance_count=3)]
    _governance(stack, Team(name="a", quota=quota), Team(name="b", quota=quota))


@case(APPS, page="sagemaker/latest/APIReference/API_ResourceSharingConfig.html", at="borrow_limit_percent|BorrowLimit")
def borrow_limit_of_a_team_that_lends_only(stack: cdk.Stack) -> None:
    quota = [InstanceQuota(instance_type="ml.p5.48xlarge", instance_count=2)]
    _governance(stack, Team(name="a", quota=quota, sharing="Lend", borrow_limit_percent=50))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-eks-prerequisites.html", at="taints|Taints")
def taint_beside_deep_health_checks(stack: cdk.Stack) -> None:
    taint = Taint(key="purpose", value="training", effect="NoSchedule")
    eks(stack, system(), pods(deep_health_checks=["InstanceStress"], taints=[taint]))


@case(APPS, page="eks/latest/userguide/coredns-add-on-create.html", at="taints|Taints")
def every_group_tainted(stack: cdk.Stack) -> None:
    taint = Taint(key="purpose", value="training", effect="NoSchedule")
    eks(stack, system(taints=[taint]), pods(taints=[taint]))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-eks-autoscaling.html", at="node_recovery|NodeRecovery")
def karpenter_without_recovery(stack: cdk.Stack) -> None:
    eks(stack, auto_scaling=AutoScaling(), node_recovery="None")


@case(APPS, page="eks/latest/userguide/creating-access-entries.html", at="PrincipalArn")
def entry_of_a_service_linked_role(stack: cdk.Stack) -> None:
    control, _ = eks(stack)
    eks_l1.CfnAccessEntry(
        stack,
        "Entry",
        cluster_name=control.cluster_name,
        principal_arn="arn:aws:iam::111122223333:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS",
    )


@case(APPS, page="eks/latest/userguide/service-quotas.html", at="public_access_cidrs|PublicAccessCidrs")
def too_many_public_access_blocks(stack: cdk.Stack) -> None:
    eks(stack, public_access_cidrs=[f"203.0.113.{number}/32" for number in range(41)])


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-release-ami-eks.html", at="schedule_expression|ScheduleExpression")
def five_fields_of_cron(stack: cdk.Stack) -> None:
    eks(stack, system(), pods(scheduled_update=ScheduledUpdate(schedule_expression="cron(0 3 * * 0)")))


@case(APPS, page=f"{GUIDE}smcluster-cmk.html", at="root_volume_key|VolumeKmsKeyId|continuous_provisioning")
def customer_key_without_continuous_provisioning(stack: cdk.Stack) -> None:
    slurm(stack, controller(), workers(root_volume_key=kms.Key(stack, "Key")))


@case(
    APPS,
    page="eks/latest/userguide/workloads-add-ons-available-eks.html",
    at="PodIdentityAssociations|ServiceAccountRoleArn|AddonName|Ebs",
)
def add_on_without_its_role(stack: cdk.Stack) -> None:
    control, cluster = eks(stack)
    addon = eks_l1.CfnAddon(stack, "Ebs", cluster_name=control.cluster_name, addon_name="aws-ebs-csi-driver")
    addon.node.add_dependency(cluster)


@case(APPS, page="IAM/latest/UserGuide/access_policies_boundaries.html", at="PermissionsBoundary")
def boundary_of_another_account(stack: cdk.Stack) -> None:
    boundary = iam.ManagedPolicy.from_managed_policy_arn(stack, "Edge", "arn:aws:iam::999988887777:policy/edge")
    iam.PermissionsBoundary.of(stack).apply(boundary)
    slurm(stack)
