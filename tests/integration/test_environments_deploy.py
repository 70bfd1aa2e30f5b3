"""Every environment, really deployed on the embedded AWS: made, asked about, changed, failed, taken back, deleted."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import NAMES, ROOT, Cloud, document, synthesise

from holdfast.localcloud.aws import serve

BROKEN = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.1.0.0/24"}}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context(), serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as aws:
        made = Cloud(aws.client_arguments)
        yield made
        made.close()


def named(found: Mapping[str, Any]) -> set[str]:
    """The file systems and buckets that a team had before."""
    storage, lifecycle = found["storage"], found.get("lifecycle", {})
    systems = [
        storage[name]["existing"]["file_system_id"]
        for name in ("lustre", "home")
        if "existing" in storage.get(name, {})
    ]
    buckets = [place["bucket_name"] for place in (storage.get("data"), lifecycle.get("bucket")) if place is not None]
    return {*systems, *buckets}


def still_there(cloud: Cloud) -> set[str]:
    systems = cloud.of("fsx").describe_file_systems()["FileSystems"]
    buckets = cloud.of("s3").list_buckets()["Buckets"]
    return {*(each["FileSystemId"] for each in systems), *(each["Name"] for each in buckets)}


def cluster_of(template: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = [r for r in template["Resources"].values() if r["Type"] == "AWS::SageMaker::Cluster"]
    return dict(found["Properties"])


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_made_changed_failed_taken_back_and_deleted(name: str, cloud: Cloud, tmp_path: Path) -> None:
    cloud = cloud.at(region_of(name))
    found = document(name, cloud, stack=f"t-{name}")
    stack, template = synthesise(found, cloud, tmp_path)

    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)
    described = cloud.of("sagemaker").describe_cluster(ClusterName=found["name"])
    wanted = {group["InstanceGroupName"]: group["InstanceCount"] for group in cluster_of(template)["InstanceGroups"]}
    assert {g["InstanceGroupName"]: g["TargetCount"] for g in described["InstanceGroups"]} == wanted
    assert ("Eks" in described["Orchestrator"]) == ("eks" in found)

    found["cluster"]["instance_groups"][-1]["instance_count"] += 1
    _, changed = synthesise(found, cloud, tmp_path)
    assert cloud.update(stack, changed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)
    grown = {group["InstanceGroupName"]: group["InstanceCount"] for group in cluster_of(changed)["InstanceGroups"]}
    described = cloud.of("sagemaker").describe_cluster(ClusterName=found["name"])
    assert {g["InstanceGroupName"]: g["TargetCount"] for g in described["InstanceGroups"]} == grown

    found["cluster"]["instance_groups"][-1]["instance_count"] += 1
    _, failing = synthesise(found, cloud, tmp_path)
    failing["Resources"]["Broken"] = {**BROKEN, "DependsOn": ["ClusterEB0386A7"]}
    assert cloud.update(stack, failing)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert any("Broken" in line for line in cloud.why(stack))
    described = cloud.of("sagemaker").describe_cluster(ClusterName=found["name"])
    assert {g["InstanceGroupName"]: g["TargetCount"] for g in described["InstanceGroups"]} == grown

    gone = cloud.delete(stack)
    assert gone["StackStatus"] == "DELETE_COMPLETE", cloud.why(gone["StackId"])
    assert found["name"] not in clusters(cloud)
    assert named(found) <= still_there(cloud)


@pytest.mark.parametrize("name", ["minimal", "eks-p5"])
def test_a_failed_creation_leaves_nothing(name: str, cloud: Cloud, tmp_path: Path) -> None:
    stack, template = synthesise(document(name, cloud, stack=f"f-{name}"), cloud, tmp_path)
    template["Resources"]["Broken"] = {**BROKEN, "DependsOn": ["ClusterEB0386A7"]}
    before = volumes(cloud)

    assert cloud.create(stack, template)["StackStatus"] == "ROLLBACK_COMPLETE", cloud.why(stack)

    assert f"f-{name}" not in clusters(cloud)
    assert volumes(cloud) == before
    cloud.delete(stack)


def test_a_new_cluster_name_replaces_the_cluster_and_the_old_one_goes(cloud: Cloud, tmp_path: Path) -> None:
    found = document("minimal", cloud, stack="r-minimal")
    stack, template = synthesise(found, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    found["cluster"]["name"] = "r-other"
    _, renamed = synthesise(found, cloud, tmp_path)
    assert cloud.update(stack, renamed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)

    assert {"r-minimal", "r-other"} & clusters(cloud) == {"r-other"}
    cloud.delete(stack)


def test_two_environments_are_deployed_at_the_same_time(cloud: Cloud, tmp_path: Path) -> None:
    made = {}
    for name in ("minimal", "eks-p5"):
        folder = tmp_path / name
        folder.mkdir()
        made[name] = synthesise(document(name, cloud, stack=f"p-{name}"), cloud, folder)
    stacks = cloud.of("cloudformation")

    for stack, template in made.values():
        stacks.create_stack(StackName=stack, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"])
    ended = {stack: cloud.settled(stack)["StackStatus"] for stack, _ in made.values()}

    assert set(ended.values()) == {"CREATE_COMPLETE"}, [cloud.why(stack) for stack in ended]
    assert {"p-minimal", "p-eks-p5"} <= clusters(cloud)
    for stack in ended:
        assert cloud.delete(stack)["StackStatus"] == "DELETE_COMPLETE"


def test_jobs_are_told_where_the_deployed_mlflow_and_tensorboard_are(cloud: Cloud, tmp_path: Path) -> None:
    found = document("minimal", cloud, stack="m-minimal")
    found["observability"] = {"mlflow": True, "tensorboard": True}
    stack, template = synthesise(found, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    (group, *_) = cloud.of("sagemaker").describe_cluster(ClusterName=found["name"])["InstanceGroups"]
    bucket, prefix = group["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").split("/", 1)
    told = cloud.of("s3").get_object(Bucket=bucket, Key=f"{prefix}/job_environment.json")["Body"].read()

    (app,) = (app for app in cloud.of("sagemaker").list_mlflow_apps()["Summaries"] if app["Name"] == found["name"])
    outputs = {output["OutputKey"]: output["OutputValue"] for output in cloud.settled(stack)["Outputs"]}
    assert json.loads(told) == {
        "MLFLOW_TRACKING_URI": app["Arn"],
        "TENSORBOARD_LOGDIR": f"s3://{outputs['DataBucketName']}/tensorboard",
    }
    cloud.delete(stack)


def region_of(name: str) -> str:
    return str(yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())["region"])


def clusters(cloud: Cloud) -> set[str]:
    return {found["ClusterName"] for found in cloud.of("sagemaker").list_clusters()["ClusterSummaries"]}


def volumes(cloud: Cloud) -> set[str]:
    return {found["FileSystemId"] for found in cloud.of("fsx").describe_file_systems()["FileSystems"]}
