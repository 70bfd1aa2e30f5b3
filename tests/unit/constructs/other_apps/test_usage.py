"""What CDK users expect of a construct, in their own app and in its unit tests."""

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from other_apps import (
    ACCOUNT,
    ENV,
    REGION,
    app,
    bundle,
    head,
    kubernetes,
    one,
    resources,
    slurm,
    stack,
    template,
    text,
    there,
    workers,
)

from holdfast_constructs import (
    HyperPodEks,
    HyperPodNetwork,
    LustreFileSystem,
    LustreMount,
    OverrideVpc,
    SlurmOrchestrator,
)

CLUSTER = "AWS::SageMaker::Cluster"


class RefusedError(Exception):
    """The app was refused at its synthesis."""


def synthesised(of: cdk.App) -> str:
    """What the synthesis of an app printed into its report; RefusedError when it failed."""
    try:
        assembly = of.synth()
    except RuntimeError as error:
        report = Path(of.outdir, "validation-report.json")
        raise RefusedError(report.read_text() if report.is_file() else str(error)) from None
    report = Path(assembly.directory, "validation-report.json")
    return report.read_text() if report.is_file() else ""


def test_a_unit_test_with_the_vpc_of_the_cdk_is_not_refused() -> None:
    team = stack()
    vpc = ec2.Vpc(team, "Vpc", max_azs=2)
    group = ec2.SecurityGroup(team, "Group", vpc=vpc, allow_all_outbound=False)
    group.connections.allow_internally(ec2.Port.all_traffic())
    network = HyperPodNetwork.from_attributes(
        team, "Network", vpc=vpc, subnet=vpc.private_subnets[0], security_group=group
    )
    slurm(team, network=network)

    root = team.node.root
    assert isinstance(root, cdk.App)
    report = synthesised(root)

    assert "dummy1a" in text(template(team))
    assert "HF210 zones" not in report.lower()
    cluster = one(team, CLUSTER)
    assert cluster["Properties"]["VpcConfig"]["Subnets"]
    routes = [name for name in resources(team, "AWS::EC2::Route") if "Private" in name and "Subnet1" in name]
    rules = [*resources(team, "AWS::EC2::SecurityGroupIngress"), *resources(team, "AWS::EC2::SecurityGroupEgress")]
    assert [name for name in (*routes, *rules) if name not in cluster["DependsOn"]] == []


def test_several_subnets_and_groups_are_the_clusters_and_its_role_may_use_them() -> None:
    team = stack()
    vpc = ec2.Vpc(team, "Vpc", max_azs=2)
    own, storage = (ec2.SecurityGroup(team, name, vpc=vpc) for name in ("Own", "Storage"))
    network = HyperPodNetwork.from_attributes(
        team,
        "Network",
        vpc=vpc,
        subnet=vpc.private_subnets[0],
        security_group=own,
        additional_subnets=vpc.private_subnets[1:],
        additional_security_groups=[storage],
    )
    cluster = slurm(team, network=network)

    config = one(team, CLUSTER)["Properties"]["VpcConfig"]
    assert (len(config["Subnets"]), len(config["SecurityGroupIds"])) == (2, 2)
    assert len(cluster.connections.security_groups) == 2
    policy = text(resources(team, "AWS::IAM::Policy"))
    assert all(each["Ref"] in policy for each in config["Subnets"])


def test_a_network_without_its_vpc_says_so_when_something_has_to_be_made_in_it() -> None:
    team = stack()
    place = there(team)
    network = HyperPodNetwork.from_attributes(team, "Bare", subnet=place.subnet, security_group=place.security_group)

    with pytest.raises(ValueError, match=r"network Team/Bare: got no VPC, .*give from_attributes the vpc"):
        _ = network.vpc


def test_a_parameter_may_say_who_reaches_the_api_server() -> None:
    team = stack()
    block = cdk.CfnParameter(team, "Office")
    HyperPodEks(
        team,
        "Eks",
        cluster_name="research",
        network=there(team),
        kubernetes_version="1.34",
        public_access_cidrs=[block.value_as_string],
    )

    access = one(team, "AWS::EKS::Cluster")["Properties"]["ResourcesVpcConfig"]
    assert access["PublicAccessCidrs"] == [{"Ref": "Office"}]


def test_a_block_that_subnets_are_cut_of_is_a_plain_one() -> None:
    team = stack()
    block = cdk.CfnParameter(team, "Block")

    with pytest.raises(ValueError, match="known only at deployment; allowed: a plain block"):
        HyperPodNetwork(team, "Network", cidr=block.value_as_string, availability_zone=f"{REGION}a")


def test_zones_are_named_by_their_ids_too() -> None:
    team = stack()
    HyperPodNetwork(
        team,
        "Network",
        cidr="10.1.0.0/16",
        availability_zone_id="usw2-az1",
        second_availability_zone_id="usw2-az2",
    )

    found = [each["Properties"] for each in resources(team, "AWS::EC2::Subnet").values()]
    assert sorted(each["AvailabilityZoneId"] for each in found) == ["usw2-az1", "usw2-az1", "usw2-az1", "usw2-az2"]
    assert not any("AvailabilityZone" in each for each in found)
    with pytest.raises(ValueError, match="exactly one"):
        HyperPodNetwork(team, "Nowhere", cidr="10.2.0.0/16")


def test_a_cluster_without_a_name_gets_one_of_its_place() -> None:
    team = stack()
    cluster = slurm(team, cluster_name=None)

    assert one(team, CLUSTER)["Properties"]["ClusterName"] == cluster.cluster_name
    assert cluster.cluster_name.startswith("Team-Cluster-")


def test_a_cluster_is_a_resource_of_the_cdk() -> None:
    team = stack()
    cluster = slurm(team)
    cluster.apply_removal_policy(cdk.RemovalPolicy.RETAIN)

    assert (cluster.env.account, cluster.env.region) == (ACCOUNT, REGION)
    assert cluster.physical_name == "research"
    assert cluster.stack.node.path == team.node.path
    assert cdk.Resource.is_owned_resource(cluster)
    assert one(team, CLUSTER)["DeletionPolicy"] == "Retain"


def test_the_escape_hatches_lead_to_the_resources() -> None:
    team = stack()
    place = there(team)
    lustre = LustreFileSystem(
        team,
        "Lustre",
        subnet=place.subnet,
        security_group=place.security_group,
        storage_capacity_gib=1200,
        per_unit_storage_throughput=125,
    )
    cluster = slurm(team, network=place, lustre=LustreMount(file_system=lustre))
    resource, file_system = cluster.node.default_child, lustre.node.default_child
    assert isinstance(resource, sagemaker.CfnCluster)
    assert isinstance(file_system, cdk.CfnResource)
    resource.add_property_override("NodeRecovery", "None")
    file_system.add_property_override("LustreConfiguration.DataCompressionType", "NONE")

    assert one(team, CLUSTER)["Properties"]["NodeRecovery"] == "None"
    lustre_properties = one(team, "AWS::FSx::FileSystem")["Properties"]
    assert lustre_properties["LustreConfiguration"]["DataCompressionType"] == "NONE"
    assert cluster.resource is resource


def test_tags_of_the_app_reach_the_cluster_beside_its_own() -> None:
    root = app()
    team = stack(root)
    slurm(team, tags={"team": "research"})
    cdk.Tags.of(root).add("cost-center", "4711")

    tags = one(team, CLUSTER)["Properties"]["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"cost-center": "4711", "team": "research"}


def test_a_permissions_boundary_reaches_every_role(tmp_path: Path) -> None:
    team = stack()
    slurm(team, lifecycle=bundle(team, folder=tmp_path), instance_groups=[head(), workers()])
    HyperPodEks(team, "Eks", cluster_name="pods", network=there(team, "Other"), kubernetes_version="1.34")
    iam.PermissionsBoundary.of(team).apply(iam.ManagedPolicy.from_managed_policy_name(team, "Boundary", "limit"))

    roles = resources(team, "AWS::IAM::Role")
    assert len(roles) > 4
    assert [name for name, role in roles.items() if "limit" not in text(role["Properties"])] == []


def test_two_bundles_of_one_name_are_refused_where_the_second_is_made(tmp_path: Path) -> None:
    team = stack()
    bundle(team, "First", folder=tmp_path, name="research")

    with pytest.raises(ValueError, match=r"Team/Second: got name 'research', which Team/First has.*leave it out"):
        bundle(team, "Second", folder=tmp_path, name="research")


def test_bundles_without_a_name_have_buckets_of_their_own(tmp_path: Path) -> None:
    team = stack()
    for name in ("First", "Second"):
        bundle(team, name, folder=tmp_path)

    names = {each["Properties"]["BucketName"] for each in resources(team, "AWS::S3::Bucket").values()}
    assert len(names) == 2
    assert all(name.startswith("sagemaker-") and len(name) <= 63 for name in names)


def test_stages_of_no_account_may_use_one_name_and_those_of_one_account_may_not(tmp_path: Path) -> None:
    root = app()
    for stage in ("Dev", "Prod"):
        bundle(cdk.Stack(cdk.Stage(root, stage), "Team"), folder=tmp_path, name="research")
    bundle(stack(cdk.Stage(root, "One", env=ENV)), folder=tmp_path, name="research")

    with pytest.raises(ValueError, match="Two/Team/Lifecycle: got name 'research', which One/Team/Lifecycle has"):
        bundle(stack(cdk.Stage(root, "Two", env=ENV)), folder=tmp_path, name="research")


def test_groups_are_added_after_the_cluster(tmp_path: Path) -> None:
    team = stack()
    place = there(team)
    lustre = LustreFileSystem.from_attributes(
        team, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx4abcd", efa=True
    )
    cluster = slurm(
        team, network=place, instance_groups=[head(lifecycle_mode="custom")], lifecycle=bundle(team, folder=tmp_path)
    )
    elsewhere = ec2.Subnet.from_subnet_id(team, "Elsewhere", "subnet-0123456789abcdef9")
    cluster.add_instance_group(
        workers(
            lifecycle_mode="custom",
            mounts=[LustreMount(file_system=lustre)],
            override_vpc=OverrideVpc(subnets=[elsewhere], security_groups=[place.security_group]),
        )
    )

    groups = one(team, CLUSTER)["Properties"]["InstanceGroups"]
    assert [group["InstanceGroupName"] for group in groups] == ["head", "workers"]
    assert "subnet/subnet-0123456789abcdef9" in text(resources(team, "AWS::IAM::Policy"))
    assert "fsx:DescribeFileSystems" in text(resources(team, "AWS::IAM::Policy"))
    with pytest.raises(ValueError, match="'workers': got the name twice"):
        cluster.add_instance_group(workers(lifecycle_mode="custom"))


def test_groups_of_the_other_orchestrator_are_refused_when_they_are_added() -> None:
    team = stack()
    cluster = slurm(team, instance_groups=[head(lifecycle_mode="none")])

    with pytest.raises(ValueError, match="got labels or taints with Slurm"):
        cluster.add_instance_group(workers(lifecycle_mode="none", labels={"team": "a"}))


def test_there_is_more_than_one_metric() -> None:
    team = stack()
    network = there(team)
    eks = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform")
    cluster = kubernetes(team, eks, network=network)
    found = [
        cluster.metric("node_memory_utilization", statistic="Maximum"),
        cluster.metric_node_count(),
        cluster.metric_failed_node_count(),
        cluster.metric_gpu_utilization(period=cdk.Duration.minutes(5)),
        cluster.metric_node_health("schedulable"),
    ]

    assert all(metric.namespace == "ContainerInsights" for metric in found)
    assert {metric.dimensions["ClusterName"] for metric in found if metric.dimensions} == {"platform"}
    assert isinstance(found[0], cloudwatch.Metric)
    with pytest.raises(ValueError, match="got no EKS cluster"):
        slurm(team, "Other", network=network, orchestrator=SlurmOrchestrator()).metric_node_count()
