"""Parts of one system in several stacks and stages of an app, and what one stack imports from another."""

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from other_apps import ENV, app, bundle, head, kubernetes, one, resources, slurm, stack, template, text, workers

from holdfast_constructs import (
    ContainerInsights,
    DataRepositoryAssociation,
    FsxCsiDriver,
    HyperPodEks,
    HyperPodNetwork,
    LustreFileSystem,
    LustreMount,
    LustreVolume,
    SlurmAccountingDatabase,
    SlurmOrchestrator,
    TrainingOperator,
)

CLUSTER = "AWS::SageMaker::Cluster"


class Ground(cdk.Stack):
    """A network, a bucket and a file system that is linked with it."""

    def __init__(self, scope: cdk.App | cdk.Stage, construct_id: str = "Ground") -> None:
        super().__init__(scope, construct_id, env=ENV)
        self.network = HyperPodNetwork(
            self,
            "Network",
            cidr="10.1.0.0/16",
            availability_zone="us-west-2a",
            second_availability_zone="us-west-2b",
        )
        self.key = kms.Key(self, "Key")
        self.bucket = s3.Bucket(self, "Bucket", encryption_key=self.key)
        self.lustre = LustreFileSystem(
            self,
            "Lustre",
            subnet=self.network.subnet,
            security_group=self.network.security_group,
            storage_capacity_gib=1200,
            per_unit_storage_throughput=125,
            data_repository_associations=[
                DataRepositoryAssociation(name="data", bucket=self.bucket, prefix="data", file_system_path="/data")
            ],
        )

    @property
    def availability_zones(self) -> list[str]:
        return ["us-west-2a", "us-west-2b"]


def test_a_slurm_cluster_stands_on_two_other_stacks(tmp_path: Path) -> None:
    root = app()
    ground = Ground(root)
    software = stack(root, "Software")
    scripts = bundle(software, folder=tmp_path)
    database = SlurmAccountingDatabase(software, "Accounting", network=ground.network)
    team = stack(root, "Team")
    cluster = slurm(
        team,
        network=ground.network,
        orchestrator=SlurmOrchestrator(accounting_database=database.accounting_database),
        instance_groups=[head(), workers()],
        continuous_provisioning=True,
        lifecycle=scripts,
        lustre=LustreMount(file_system=ground.lustre),
    )
    ground.bucket.grant_read_write(cluster.role)

    root.synth()

    assert {each.node.id for each in team.dependencies} == {"Ground", "Software"}
    assert {each.node.id for each in software.dependencies} == {"Ground"}
    assert "Fn::ImportValue" in text(one(team, CLUSTER)["Properties"]["VpcConfig"])
    assert "mounts.json" not in text(template(team))


def test_a_kubernetes_cluster_and_its_addons_stand_on_two_other_stacks(tmp_path: Path) -> None:
    root = app()
    ground = Ground(root)
    plane = stack(root, "Plane")
    eks = HyperPodEks(plane, "Eks", cluster_name="research", network=ground.network, kubernetes_version="1.34")
    team = stack(root, "Team")
    cluster = kubernetes(team, eks, network=ground.network, lifecycle=bundle(team, folder=tmp_path))
    tools = stack(root, "Tools")
    ContainerInsights(tools, "Insights", eks_cluster=eks, cluster=cluster)
    TrainingOperator(tools, "Operator", eks_cluster=eks, cluster=cluster)
    driver = FsxCsiDriver(tools, "Driver", eks_cluster=eks, cluster=cluster)
    LustreVolume(tools, "Volume", eks_cluster=eks, driver=driver, file_system=ground.lustre, capacity_gib=1200)
    people = iam.Role(team, "People", assumed_by=iam.AccountPrincipal("111122223333"))
    eks.grant_access(people, policy="AmazonEKSViewPolicy")

    root.synth()

    assert {each.node.id for each in plane.dependencies} == {"Ground"}
    entries = resources(team, "AWS::EKS::AccessEntry").values()
    assert sorted(entry["Properties"].get("Type", "people") for entry in entries) == ["HYPERPOD_LINUX", "people"]
    assert "Team" in {each.node.id for each in tools.dependencies}


def test_one_system_is_made_in_two_stages(tmp_path: Path) -> None:
    root = app()
    for name in ("Dev", "Prod"):
        stage = cdk.Stage(root, name)
        ground = Ground(stage)
        slurm(
            stack(stage, "Team"),
            network=ground.network,
            instance_groups=[head(), workers()],
            lifecycle=bundle(ground, folder=tmp_path),
            lustre=LustreMount(file_system=ground.lustre),
        )

    assembly = root.synth()

    assert [len(each.stacks) for each in (assembly.get_nested_assembly(f"assembly-{n}") for n in ("Dev", "Prod"))] == [
        2,
        2,
    ]


def test_what_one_stack_exports_another_app_imports_by_attributes(tmp_path: Path) -> None:
    root = app()
    ground = Ground(root)
    cdk.CfnOutput(ground, "FileSystem", value=ground.lustre.file_system_id, export_name="research-file-system")
    cdk.CfnOutput(ground, "MountName", value=ground.lustre.mount_name, export_name="research-mount-name")
    other = stack(app(), "Other")
    lustre = LustreFileSystem.from_attributes(
        other,
        "Lustre",
        file_system_id=cdk.Fn.import_value("research-file-system"),
        mount_name=cdk.Fn.import_value("research-mount-name"),
    )
    slurm(other, lustre=LustreMount(file_system=lustre))

    root.synth()

    config = one(other, CLUSTER)["Properties"]["InstanceGroups"][0]["InstanceStorageConfigs"][0]["FsxLustreConfig"]
    assert config["MountName"] == {"Fn::ImportValue": "research-mount-name"}
    assert ".fsx.us-west-2." in text(config["DnsName"])


@pytest.mark.parametrize("owner", ["same", "other"])
def test_a_linked_bucket_may_be_of_another_stack(owner: str) -> None:
    root = app()
    ground = Ground(root)
    bucket = ground.bucket if owner == "same" else s3.Bucket(stack(root, "Data"), "Bucket")
    links = stack(root, "Links")
    LustreFileSystem.from_attributes(
        links,
        "Lustre",
        file_system_id="fs-0123456789abcdef0",
        mount_name="fsx4abcd",
        data_repository_associations=[
            DataRepositoryAssociation(name="more", bucket=bucket, prefix="more", file_system_path="/more")
        ],
    )

    root.synth()

    link = one(links, "AWS::FSx::DataRepositoryAssociation")["Properties"]
    assert link["FileSystemId"] == "fs-0123456789abcdef0"
    assert "Fn::ImportValue" in text(link["DataRepositoryPath"])
