"""Apps that AWS's documentation allows: check has to be silent, without errors and warnings."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from parts import (
    App,
    case,
    controller,
    eks,
    lustre,
    plain,
    pods,
    private_vpc,
    script_bucket,
    self_referencing_group,
    slurm,
    system,
)
from parts import workers as compute

from holdfast_constructs import (
    AutoPatch,
    AutoScaling,
    HyperPodNetwork,
    InstanceQuota,
    LustreFileSystem,
    LustreMount,
    Taint,
    TaskGovernance,
    Team,
)

APPS: dict[str, App] = {}
GUIDE = "sagemaker/latest/dg/"


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html")
def slurm_without_scripts(stack: cdk.Stack) -> None:
    slurm(stack)


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html")
def slurm_continuous_without_scripts(stack: cdk.Stack) -> None:
    slurm(stack, continuous_provisioning=True)


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-eks-autoscaling.html")
def karpenter(stack: cdk.Stack) -> None:
    eks(stack, system(), pods(instance_count=0), auto_scaling=AutoScaling())


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-ami-auto-patching.html")
def auto_patch_on_eks(stack: cdk.Stack) -> None:
    eks(stack, system(), pods(auto_patch=AutoPatch(strategy="WhenIdle")))


@case(APPS, page="sagemaker/latest/APIReference/API_ClusterKubernetesTaint.html")
def taint_on_one_group_of_two(stack: cdk.Stack) -> None:
    eks(stack, system(), pods(taints=[Taint(key="nvidia.com/gpu", value="true", effect="NoSchedule")]))


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-eks-operate-console-ui-governance-policies.html")
def quotas_that_fill_the_cluster(stack: cdk.Stack) -> None:
    control, cluster = eks(stack)
    quota = [InstanceQuota(instance_type="ml.p5.48xlarge", instance_count=2)]
    teams = [Team(name="a", quota=quota, weight=10), Team(name="b", quota=quota, sharing="Lend")]
    TaskGovernance(stack, "Governance", eks_cluster=control, cluster=cluster, name="teams", policy=False, teams=teams)


@case(APPS, page=f"{GUIDE}sagemaker-hyperpod-prerequisites.html")
def vpc_of_the_app(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    place = HyperPodNetwork.from_attributes(
        stack, "Place", vpc=vpc, subnet=vpc.private_subnets[0], security_group=group, s3_gateway_endpoint=True
    )
    slurm(stack, controller(), compute(), network=place)


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html")
def file_system_of_another_app(stack: cdk.Stack) -> None:
    existing = LustreFileSystem.from_attributes(
        stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx4abcd"
    )
    slurm(stack, lustre=LustreMount(file_system=existing, mount_path="/shared"))


@case(APPS, page=f"{GUIDE}smcluster-getting-started-slurm-cli.html")
def constructs_of_the_cdk(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    place = {"subnet_ids": [vpc.private_subnets[0].subnet_id], "security_group_ids": [group.security_group_id]}
    system_of_files = lustre(stack, "Lustre", **place)
    system_of_files.node.add_dependency(group)
    mount = {"dnsName": system_of_files.attr_dns_name, "mountName": system_of_files.attr_lustre_mount_name}
    plain(stack, vpc=vpc, group=group, workers={"instanceStorageConfigs": [{"fsxLustreConfig": mount}]})


@case(APPS, page="vpc/latest/privatelink/gateway-endpoints.html")
def scripts_of_the_app(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    scripts = script_bucket(stack)
    source = {"sourceS3Uri": f"s3://{scripts.bucket_name}/v1.0", "onInitComplete": "extend.sh"}
    subnets = vpc.select_subnets(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS).subnets
    plain(stack, vpc=vpc, subnets=subnets, workers={"lifeCycleConfig": source})
