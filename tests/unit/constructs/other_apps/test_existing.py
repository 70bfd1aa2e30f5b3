"""What a team has already, in the team's own app: roles, scripts, buckets, EKS clusters, HyperPod clusters."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import DependencyGroup
from other_apps import (
    ACCOUNT,
    REGION,
    app,
    bundle,
    head,
    kubernetes,
    one,
    resources,
    slurm,
    stack,
    text,
    there,
    workers,
)

from holdfast_constructs import (
    AutoScaling,
    ContainerInsights,
    DataBucket,
    DataRepositoryAssociation,
    FsxCsiDriver,
    HyperPodCluster,
    HyperPodEks,
    IHyperPodEks,
    LifecycleBundle,
    LustreFileSystem,
    LustreVolume,
    ObservabilityAddon,
    OpenZfsFileSystem,
    OpenZfsMount,
    PrometheusWorkspace,
    TaskGovernance,
    TrainingOperator,
)

CLUSTER = "AWS::SageMaker::Cluster"
CLUSTER_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/0123456789ab"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/team/Nodes"


def test_an_imported_role_is_used_and_nothing_is_added_to_it() -> None:
    team = stack()
    cluster = slurm(team, role=iam.Role.from_role_arn(team, "Nodes", ROLE_ARN, mutable=False))

    assert {group["ExecutionRole"] for group in one(team, CLUSTER)["Properties"]["InstanceGroups"]} == {ROLE_ARN}
    assert resources(team, "AWS::IAM::Role") == {}
    assert resources(team, "AWS::IAM::Policy") == {}
    assert cluster.role.role_name == "Nodes"


def test_a_role_of_the_app_gets_what_nodes_need_and_a_group_may_have_another() -> None:
    team = stack()
    trust = iam.ServicePrincipal("sagemaker.amazonaws.com")
    own, others = (iam.Role(team, name, assumed_by=trust) for name in ("Own", "Others"))
    slurm(
        team,
        role=own,
        instance_groups=[head(lifecycle_mode="none"), workers(lifecycle_mode="none", role=others)],
    )

    groups = one(team, CLUSTER)["Properties"]["InstanceGroups"]
    roles = [group["ExecutionRole"]["Fn::GetAtt"][0] for group in groups]
    assert [role[:4] for role in roles] == ["Own2", "Othe"] or len(set(roles)) == 2
    policies = resources(team, "AWS::IAM::Policy").values()
    assert all("ec2:CreateNetworkInterface" in text(policy) for policy in policies)
    assert len(policies) == 2
    managed = [role["Properties"]["ManagedPolicyArns"] for role in resources(team, "AWS::IAM::Role").values()]
    assert all("AmazonSageMakerClusterInstanceRolePolicy" in text(each) for each in managed)
    waits = one(team, CLUSTER)["DependsOn"]
    assert [name for name in resources(team, "AWS::IAM::Policy") if name not in waits] == []


def test_karpenter_works_with_a_role_that_is_given() -> None:
    team = stack()
    plane = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform")
    kubernetes(
        team,
        plane,
        continuous_provisioning=True,
        auto_scaling=AutoScaling(),
        auto_scaling_role=iam.Role.from_role_arn(team, "Karpenter", ROLE_ARN, mutable=False),
    )

    assert one(team, CLUSTER)["Properties"]["ClusterRole"] == ROLE_ARN


def test_a_cluster_without_lifecycle_has_no_bucket() -> None:
    team = stack()
    slurm(team)

    assert resources(team, "AWS::S3::Bucket") == {}
    assert "LifeCycleConfig" not in text(one(team, CLUSTER))


def test_a_bundle_goes_into_a_bucket_that_is_there(tmp_path: Path) -> None:
    team = stack()
    key = kms.Key.from_key_arn(team, "Key", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd")
    bucket = s3.Bucket.from_bucket_attributes(team, "Bucket", bucket_name="team-scripts", encryption_key=key)
    scripts = bundle(team, folder=tmp_path, bucket=bucket, prefix="hyperpod")
    slurm(team, lifecycle=scripts, instance_groups=[head(), workers()])

    assert resources(team, "AWS::S3::Bucket") == {}
    assert scripts.source_s3_uri.startswith("s3://team-scripts/hyperpod/")
    deployed = one(team, "Custom::CDKBucketDeployment")["Properties"]
    assert (deployed["DestinationBucketName"], deployed["Prune"]) == ("team-scripts", False)
    policies = text(resources(team, "AWS::IAM::Policy"))
    assert ":s3:::team-scripts/hyperpod/*" in policies
    assert "kms:Decrypt" in policies


def test_scripts_that_are_there_are_run_and_left_alone() -> None:
    team = stack()
    extensions = LifecycleBundle.from_source_s3_uri(
        team, "Extensions", source_s3_uri="s3://team-scripts/extensions-1.4", on_init_complete="run_extensions.sh"
    )
    legacy = LifecycleBundle.from_source_s3_uri(
        team, "Legacy", source_s3_uri="s3://team-scripts/base-1.2", on_create="on_create.sh"
    )
    slurm(
        team,
        lifecycle=extensions,
        instance_groups=[head(), workers(lifecycle=legacy, lifecycle_mode="custom")],
    )

    configs = [group["LifeCycleConfig"] for group in one(team, CLUSTER)["Properties"]["InstanceGroups"]]
    assert configs == [
        {"OnInitComplete": "run_extensions.sh", "SourceS3Uri": "s3://team-scripts/extensions-1.4"},
        {"OnCreate": "on_create.sh", "SourceS3Uri": "s3://team-scripts/base-1.2"},
    ]
    assert resources(team, "Custom::CDKBucketDeployment") == {}
    assert ":s3:::team-scripts/extensions-1.4/*" in text(resources(team, "AWS::IAM::Policy"))
    with pytest.raises(ValueError, match="exactly one of them"):
        LifecycleBundle.from_source_s3_uri(team, "Neither", source_s3_uri="s3://team-scripts/x")


@pytest.mark.parametrize("managed", [False, True])
def test_the_policy_of_a_bucket_that_is_there_is_written_only_when_asked_for(managed: bool) -> None:
    team = stack()
    found = DataBucket.from_bucket_name(team, "Data", bucket_name="team-datasets", manage_bucket_policy=managed)
    found.bucket.grant_read_write(iam.Role(team, "Role", assumed_by=iam.AccountPrincipal(ACCOUNT)))

    policies = resources(team, "AWS::S3::BucketPolicy")
    assert len(policies) == int(managed)
    assert ('"aws:SecureTransport": "false"' in text(policies)) is managed


def test_file_systems_that_are_there_have_the_names_that_fsx_gives() -> None:
    team = stack()
    bucket = s3.Bucket.from_bucket_name(team, "Shared", "company-shared")
    LustreFileSystem.from_attributes(
        team,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        mount_name="fsx4abcd",
        data_repository_associations=[
            DataRepositoryAssociation(name="all", bucket=bucket, prefix="", file_system_path="/all"),
            DataRepositoryAssociation(name="one", bucket=bucket, prefix="one", file_system_path="/one"),
        ],
    )
    home = OpenZfsFileSystem.from_attributes(team, "Home", file_system_id="fs-0123456789abcdef1")
    slurm(team, home=OpenZfsMount(file_system=home))

    links = resources(team, "AWS::FSx::DataRepositoryAssociation").values()
    paths = [link["Properties"]["DataRepositoryPath"] for link in links]
    assert sorted(paths) == ["s3://company-shared/", "s3://company-shared/one"]
    config = one(team, CLUSTER)["Properties"]["InstanceGroups"][0]["InstanceStorageConfigs"][0]
    assert "fs-0123456789abcdef1.fsx.us-west-2." in text(config)


def volume(team: cdk.Stack, plane: IHyperPodEks) -> None:
    """A HyperPod cluster on a control plane, with the Lustre volume and the operator."""
    cluster = kubernetes(
        team,
        plane,
    )
    lustre = LustreFileSystem.from_attributes(
        team, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx4abcd"
    )
    driver = FsxCsiDriver(team, "Driver", eks_cluster=plane, cluster=cluster)
    LustreVolume(
        team,
        "Volume",
        eks_cluster=plane,
        driver=driver,
        file_system=lustre,
        capacity_gib=1200,
    )


def installer(team: cdk.Stack) -> dict[str, object]:
    """The environment of the function that installs charts."""
    functions = resources(team, "AWS::Lambda::Function").values()
    (found,) = [f for f in functions if "CLUSTER_NAME" in text(f.get("Properties", {}).get("Environment", {}))]
    variables: dict[str, object] = found["Properties"]["Environment"]["Variables"]
    return variables


@pytest.mark.parametrize("by", ["name", "arn"])
def test_a_volume_is_installed_on_an_eks_cluster_by_its_name_or_arn(by: str) -> None:
    team = stack()
    place = there(team, "Reach")
    if by == "name":
        plane = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform", network=place)
    else:
        arn = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/platform"
        plane = HyperPodEks.from_cluster_arn(team, "Eks", cluster_arn=arn, network=place)
    volume(team, plane)

    assert installer(team) == {"CLUSTER_NAME": "platform"}
    assert "eks:DescribeCluster" in text(resources(team, "AWS::IAM::Policy"))
    assert len(resources(team, "Custom::HoldfastHelmRelease")) == 1
    assert one(team, CLUSTER)["Properties"]["Orchestrator"]["Eks"]["ClusterArn"]


def test_a_volume_is_installed_on_an_eks_cluster_of_the_cdk() -> None:
    team = stack()
    plane = eks_v2.Cluster(
        team,
        "Plane",
        version=eks_v2.KubernetesVersion.V1_34,
        default_capacity_type=eks_v2.DefaultCapacityType.NODEGROUP,
        default_capacity=0,
    )
    plugin = eks.CfnAddon(
        team, "Cni", cluster_name=plane.cluster_name, addon_name="vpc-cni", addon_version="v1.20.4-eksbuild.2"
    )
    joined = HyperPodEks.from_cluster(team, "Eks", cluster=plane)
    joined.install_charts(["ml.g5.2xlarge"])
    joined.dependencies = DependencyGroup(joined.dependencies, plugin)
    volume(team, joined)

    assert set(installer(team)) == {"CLUSTER_NAME", "CLUSTER_ENDPOINT", "CLUSTER_CERTIFICATE_AUTHORITY"}
    waits = one(team, CLUSTER)["DependsOn"]
    assert [name for name in resources(team, "AWS::EKS::Cluster") if name not in waits] == []


def test_an_eks_cluster_that_the_cdk_imported_takes_nodes_and_asks_for_a_network_to_install_from() -> None:
    team = stack()
    imported = eks.Cluster.from_cluster_attributes(team, "Plane", cluster_name="platform")
    plane = HyperPodEks.from_cluster(team, "Eks", cluster=imported)

    with pytest.raises(ValueError, match="EKS cluster platform: got no network to reach its API server from"):
        volume(team, plane)


def test_charts_are_installed_on_a_cluster_that_lacks_them() -> None:
    team = stack()
    plane = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform", network=there(team, "Reach"))
    plane.install_charts(["ml.g5.2xlarge"])
    kubernetes(
        team,
        plane,
    )

    charts = resources(team, "Custom::HoldfastHelmRelease")
    assert charts
    assert [name for name in charts if name not in one(team, CLUSTER)["DependsOn"]] == []
    assert resources(team, "AWS::EKS::Addon") == {}


def test_an_imported_role_gets_no_entry_that_it_may_have_already() -> None:
    team = stack()
    plane = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform")
    kubernetes(
        team,
        plane,
        role=iam.Role.from_role_arn(team, "Nodes", ROLE_ARN, mutable=False),
    )

    assert resources(team, "AWS::EKS::AccessEntry") == {}


def test_an_imported_cluster_takes_addons_and_operators() -> None:
    team = stack()
    plane = HyperPodEks.from_cluster_name(team, "Eks", cluster_name="platform", network=there(team))
    cluster = HyperPodCluster.from_cluster_attributes(
        team, "Cluster", cluster_name="research", cluster_arn=CLUSTER_ARN, eks_cluster_name="platform"
    )
    ContainerInsights(team, "Insights", eks_cluster=plane, cluster=cluster)
    TrainingOperator(team, "Operator", eks_cluster=plane, cluster=cluster)
    TaskGovernance(team, "Governance", eks_cluster=plane, cluster=cluster, name="teams")
    prometheus = PrometheusWorkspace(team, "Prometheus", alias="research")
    ObservabilityAddon(team, "Observability", eks_cluster=plane, cluster=cluster, prometheus=prometheus)
    FsxCsiDriver(team, "Driver", eks_cluster=plane, cluster=cluster)

    names = {each["Properties"]["AddonName"] for each in resources(team, "AWS::EKS::Addon").values()}
    assert len(names) == 6
    assert one(team, "AWS::SageMaker::ClusterSchedulerConfig")["Properties"]["ClusterArn"] == CLUSTER_ARN
    assert resources(team, CLUSTER) == {}


def test_an_imported_cluster_knows_its_account_and_grants() -> None:
    team = stack()
    arn = "arn:aws:sagemaker:eu-west-1:444455556666:cluster/0123456789ab"
    cluster = HyperPodCluster.from_cluster_arn(team, "Cluster", cluster_arn=arn)
    cluster.grant_read(iam.Role(team, "Role", assumed_by=iam.AccountPrincipal(ACCOUNT)))

    assert (cluster.env.account, cluster.env.region) == ("444455556666", "eu-west-1")
    assert arn in text(resources(team, "AWS::IAM::Policy"))
    with pytest.raises(ValueError, match="got its ARN alone, which has no name"):
        _ = cluster.cluster_name


def missing(root: cdk.App) -> list[dict[str, object]]:
    """What the CDK CLI would look up."""
    manifest = json.loads(Path(root.synth().directory, "manifest.json").read_text())
    found: list[dict[str, object]] = manifest.get("missing", [])
    return found


def test_a_cluster_is_looked_up_by_its_name() -> None:
    root = app()
    cluster = HyperPodCluster.from_lookup(stack(root), "Cluster", cluster_name="research")

    (query,) = missing(root)
    assert query["provider"] == "cc-api-provider"
    assert '"propertyMatch": {"ClusterName": "research"}' in text(query["props"])
    assert cluster.cluster_name == "research"


def test_what_was_looked_up_by_an_arn_is_remembered() -> None:
    first = app()
    HyperPodCluster.from_lookup(stack(first), "Cluster", cluster_arn=CLUSTER_ARN)
    (query,) = missing(first)
    answer = {
        "ClusterName": "research",
        "ClusterArn": CLUSTER_ARN,
        "VpcConfig": {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]},
        "Orchestrator": {"Eks": {"ClusterArn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/platform"}},
    }
    again = cdk.App(analytics_reporting=False, context={str(query["key"]): [answer]})
    cluster = HyperPodCluster.from_lookup(stack(again), "Cluster", cluster_arn=CLUSTER_ARN)

    assert missing(again) == []
    assert cluster.cluster_name == "research"
    assert [group.security_group_id for group in cluster.connections.security_groups] == ["sg-0123456789abcdef0"]
    assert (cluster.metric_node_count().dimensions or {})["ClusterName"] == "platform"


def test_a_look_up_needs_one_name_and_a_place_to_look_in() -> None:
    nowhere = cdk.Stack(app(), "Nowhere")

    with pytest.raises(ValueError, match="without account and region to look in"):
        HyperPodCluster.from_lookup(nowhere, "Cluster", cluster_name="research")
    with pytest.raises(ValueError, match="exactly one of them"):
        HyperPodCluster.from_lookup(stack(), "Cluster")
