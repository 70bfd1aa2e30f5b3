"""What is imported and what is deployed are the same cluster, beside the things of the team that it is made of."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from embedded_stack import Cloud, deploy
from team_things import BUCKET, TeamThings

from holdfast.config import Environment
from holdfast.importing import Draft, deployed_environment, from_observed, from_samples, read_cluster, render
from holdfast.importing.files import cluster_of
from holdfast.localcloud.aws import serve
from holdfast.updates import compare
from holdfast.validation.imports import request_of

REGION = "us-west-2"
EXTENSION = {"SourceS3Uri": f"s3://{BUCKET}/base", "OnInitComplete": "extend.sh"}
CUSTOM = {"SourceS3Uri": f"s3://{BUCKET}/base", "OnCreate": "on_create.sh"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cloud, TeamThings]]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        cloud = Cloud(running)
        yield cloud, TeamThings(cloud)
        cloud.close()


def group(name: str, kind: str, count: int, role: str, **more: Any) -> dict[str, Any]:
    sizes = {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": count}
    return {**sizes, "ExecutionRole": role, "ThreadsPerCore": 1, **more}


def lustre(things: TeamThings) -> dict[str, Any]:
    config = {"DnsName": things.lustre["DNSName"], "MountName": things.lustre["LustreConfiguration"]["MountName"]}
    return {"FsxLustreConfig": {**config, "MountPath": "/fsx"}}


def home(things: TeamThings) -> dict[str, Any]:
    return {"FsxOpenZfsConfig": {"DnsName": things.home["DNSName"], "MountPath": "/home"}}


def extension(things: TeamThings) -> dict[str, Any]:
    """Two roles, groups with and without scripts, and a file system that not all mount."""
    nodes, head = things.roles["HyperPodNodes"], things.roles["HyperPodHead"]
    storage = [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}, lustre(things)]
    compute = {"NodeType": "Compute", "PartitionNames": ["dev"]}
    return {
        "InstanceGroups": [
            group("head", "ml.m5.2xlarge", 1, head, LifeCycleConfig=EXTENSION, SlurmConfig={"NodeType": "Controller"}),
            group(
                *("work", "ml.g5.8xlarge", 2, nodes),
                LifeCycleConfig=EXTENSION,
                SlurmConfig=compute,
                InstanceStorageConfigs=storage,
            ),
            group("plain", "ml.c5.4xlarge", 2, nodes, SlurmConfig=compute),
        ],
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}},
        "VpcConfig": {"Subnets": things.subnets[:1], "SecurityGroupIds": [things.group]},
        "NodeRecovery": "None",
    }


def custom(things: TeamThings) -> dict[str, Any]:
    """Scripts that do all of it, both kinds of file systems, two subnets, two security groups."""
    nodes, storage = things.roles["HyperPodNodes"], [lustre(things), home(things)]
    more = {"LifeCycleConfig": CUSTOM, "InstanceStorageConfigs": storage}
    roles = ({"NodeType": "Controller"}, {"NodeType": "Login"}, {"NodeType": "Compute", "PartitionNames": ["dev"]})
    return {
        "InstanceGroups": [
            group(f"group-{number}", "ml.m5.2xlarge", 1, nodes, SlurmConfig=role, **more)
            for number, role in enumerate(roles)
        ],
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Merge"}},
        "VpcConfig": {"Subnets": things.subnets, "SecurityGroupIds": [things.group, things.other_group]},
        "NodeRecovery": "Automatic",
        "Tags": [{"Key": "team", "Value": "research"}],
    }


def kubernetes(things: TeamThings) -> dict[str, Any]:
    """An EKS cluster of the team's, with Karpenter, labels and a group in a subnet of its own."""
    nodes = things.roles["HyperPodNodes"]
    own = {"Subnets": things.subnets[1:], "SecurityGroupIds": [things.group]}
    return {
        "InstanceGroups": [
            group("system", "ml.m5.2xlarge", 1, nodes, LifeCycleConfig=CUSTOM),
            group(
                *("work", "ml.g5.8xlarge", 2, nodes),
                LifeCycleConfig=CUSTOM,
                OverrideVpcConfig=own,
                KubernetesConfig={"Labels": {"team": "a"}, "Taints": [{"Key": "gpu", "Effect": "NoSchedule"}]},
            ),
        ],
        "Orchestrator": {"Eks": {"ClusterArn": things.eks()}},
        "VpcConfig": {"Subnets": things.subnets[:1], "SecurityGroupIds": [things.group]},
        "NodeRecovery": "Automatic",
        "NodeProvisioningMode": "Continuous",
        "ClusterRole": things.roles["HyperPodClusterRole"],
        "AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"},
    }


SHAPES = {"extension": extension, "custom": custom, "kubernetes": kubernetes}


def named(imported: Draft, name: str) -> Environment:
    """The environment in the file, under another name, so that it is made beside."""
    document = yaml.safe_load(render(imported, origin="the test"))
    document["cluster"].pop("name", None)
    return Environment.model_validate({**document, "name": name})


def described(cloud: Cloud, name: str) -> dict[str, Any]:
    """What DescribeCluster says of what somebody asked for."""
    answer = cloud.client("sagemaker").describe_cluster(ClusterName=name)
    request = request_of(answer)
    return {key: value for key, value in request.items() if key not in ("ClusterName", "ResponseMetadata")}


def asked(request: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key not in ("ClusterName", "Tags")}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cluster_is_imported_and_deployed_beside(shape: str, world: tuple[Cloud, TeamThings], tmp_path: Path) -> None:
    cloud, things = world
    request, sagemaker = SHAPES[shape](things), cloud.client("sagemaker")
    sagemaker.create_cluster(ClusterName=f"{shape}-there", **request)
    there = described(cloud, f"{shape}-there")
    imported = from_observed(read_cluster(cloud.client, cluster_name=f"{shape}-there", region=REGION))
    from_files = of_files(request, tmp_path)
    if shape == "kubernetes":  # an EKS cluster has one HyperPod cluster
        sagemaker.delete_cluster(ClusterName=f"{shape}-there")

    environment = named(imported, f"{shape}-beside")
    deploy(cloud, environment, outdir=tmp_path / "assembly")

    assert described(cloud, f"{shape}-beside") == there
    assert asked(request).items() <= there.items()
    assert named(from_files, f"{shape}-beside").cluster == environment.cluster
    assert [note for note in imported.notes if note.decide] == []
    assert_nothing_changes(cloud, environment)


def of_files(request: Mapping[str, Any], folder: Path) -> Draft:
    """The same cluster as files say it, its network in one of its own."""
    parts = {"cluster": {**request, "VpcConfig": None}, "network": request["VpcConfig"]}
    del parts["cluster"]["VpcConfig"]
    paths = [folder / f"{name}.json" for name in parts]
    for path, part in zip(paths, parts.values(), strict=True):
        path.write_text(json.dumps(part))
    given = cluster_of(files=paths, name="of-files")
    return from_samples(given.request, given.provisioning)


def assert_nothing_changes(cloud: Cloud, environment: Environment) -> None:
    found = deployed_environment(stack_name=environment.stack_name, region=REGION, client=cloud.reach)
    assert found.environment is not None
    assert compare(found.environment, environment) == []

    observed = read_cluster(cloud.client, cluster_name=environment.cluster_name, region=REGION)
    again = Environment.model_validate(yaml.safe_load(render(from_observed(observed), origin="the test")))
    assert compare(found.environment, again) == []


def test_files_with_the_legacy_file_are_deployed_once_their_question_is_decided(
    world: tuple[Cloud, TeamThings], tmp_path: Path
) -> None:
    cloud, things = world
    nodes = things.roles["HyperPodNodes"]
    groups = [
        group("controller-machine", "ml.m5.2xlarge", 1, nodes, LifeCycleConfig=CUSTOM),
        group("worker-group-1", "ml.g5.8xlarge", 2, nodes, LifeCycleConfig=CUSTOM),
    ]
    mount = lustre(things)["FsxLustreConfig"]
    legacy = {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": "controller-machine",
        "worker_groups": [{"instance_group_name": "worker-group-1", "partition_name": "dev"}],
        "fsx_dns_name": mount["DnsName"],
        "fsx_mountname": mount["MountName"],
    }
    parts = (groups, legacy, {"Subnets": things.subnets[:1], "SecurityGroupIds": [things.group]})
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.json").write_text(json.dumps(part))

    given = cluster_of(files=sorted(tmp_path.glob("*.json")), name="legacy")
    imported = from_samples(given.request, given.provisioning)
    deploy(cloud, named(imported, "legacy"), outdir=tmp_path / "assembly")
    found = described(cloud, "legacy")

    assert [note.path for note in imported.notes if note.decide] == ["lifecycle.existing.source_s3_uri"]
    assert found["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": "Merge"}}
    assert [each["SlurmConfig"] for each in found["InstanceGroups"]] == [
        {"NodeType": "Controller"},
        {"NodeType": "Compute", "PartitionNames": ["dev"]},
    ]
    for wanted, made in zip(groups, found["InstanceGroups"], strict=True):
        assert wanted.items() <= made.items()
        assert made["InstanceStorageConfigs"] == [lustre(things)]
