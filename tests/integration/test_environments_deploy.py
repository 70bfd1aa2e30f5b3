"""Every environment, really deployed on the embedded AWS: made, asked about, changed, failed, taken back, deleted."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from deployments import NAMES, ROOT, Cloud, document, synthesise
from known_settings import known_to_aws
from typer.testing import CliRunner
from unlinted import unlinted

from holdfast.cli.commands.environment import diff
from holdfast.config import Environment, Slurm, load
from holdfast.importing import deployed_environment, from_observed, read_cluster, render
from holdfast.localcloud.aws import serve
from holdfast.updates import compare

ALWAYS = ("eks-p5", "full-slurm")
"""Deployed in every test run; the others with ``--e2e``."""
IMPORTED = ("local", "slurm-p5", "eks-p5", "full", "full-slurm")
BROKEN = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.1.0.0/24"}}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context(), serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as aws:
        made = Cloud(aws.client_arguments, home=aws.home)
        yield made
        made.close()


@pytest.fixture(scope="module", autouse=True)
def without_cfn_lint() -> Iterator[None]:
    """The snapshot tests judge the same templates with it."""
    with unlinted():
        yield


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
    properties: dict[str, Any] = found["Properties"]
    return properties


def imported_as_written(deployed: "Deployed") -> Environment:
    """The environment, where an import gives it again: not where things are used that an environment did not make."""
    if deployed.name not in IMPORTED:
        pytest.skip("an import names what was there before by its ids")
    return deployed.environment


def known(environment: Environment) -> dict[str, Any]:
    """The environment as a deployed one is read back: with its names, and what was left to be decided."""
    document = known_to_aws(environment)
    document["cluster"]["name"] = environment.cluster_name  # also where it is the environment's
    if environment.orchestrator == "eks":
        for group in document["cluster"]["instance_groups"]:
            group.pop("mount_lustre")  # pods mount it, and the API does not know
    if environment.orchestrator == "slurm" and document["slurm"] is None:
        document["slurm"] = Slurm().model_dump(mode="json")
    return document


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """An environment, deployed."""

    name: str
    cloud: Cloud
    folder: Path
    document: dict[str, Any]
    """As its file has it."""
    stack: str
    template: dict[str, Any]
    status: str

    @property
    def environment(self) -> Environment:
        return load(self.folder / f"{self.document['name']}.yaml")

    @property
    def of_diff(self) -> dict[str, str]:
        """Variables of a shell in which ``holdfast`` reaches it."""
        names = {"AWS_ENDPOINT_URL": "endpoint_url", "AWS_ACCESS_KEY_ID": "aws_access_key_id"}
        names |= {"AWS_SECRET_ACCESS_KEY": "aws_secret_access_key"}
        return {name: self.cloud.reach[value] for name, value in names.items()}


@pytest.fixture(
    scope="module",
    params=[name if name in ALWAYS else pytest.param(name, marks=pytest.mark.e2e) for name in NAMES],
)
def deployed(request: pytest.FixtureRequest, cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """The one that the tests which change nothing share, and the last of them takes away."""
    name, folder = str(request.param), tmp_path_factory.mktemp("deployed")
    cloud = cloud.at(region_of(name))
    found = document(name, cloud, stack=f"t-{name}")
    stack, template = synthesise(found, cloud, folder)
    status = str(cloud.create(stack, template)["StackStatus"])
    return Deployed(
        name=name, cloud=cloud, folder=folder, document=found, stack=stack, template=template, status=status
    )


def targets(deployed: Deployed) -> dict[str, int]:
    described = deployed.cloud.of("sagemaker").describe_cluster(ClusterName=deployed.document["name"])
    return {group["InstanceGroupName"]: group["TargetCount"] for group in described["InstanceGroups"]}


def wanted(template: Mapping[str, Any]) -> dict[str, int]:
    return {group["InstanceGroupName"]: group["InstanceCount"] for group in cluster_of(template)["InstanceGroups"]}


def test_an_environment_is_made(deployed: Deployed) -> None:
    cloud = deployed.cloud
    assert deployed.status == "CREATE_COMPLETE", cloud.why(deployed.stack)

    described = cloud.of("sagemaker").describe_cluster(ClusterName=deployed.document["name"])

    assert targets(deployed) == wanted(deployed.template)
    assert ("Eks" in described["Orchestrator"]) == ("eks" in deployed.document)


def test_what_is_imported_is_what_was_deployed(deployed: Deployed) -> None:
    environment = imported_as_written(deployed)

    observed = read_cluster(
        deployed.cloud.of, cluster_name=environment.cluster_name, region=environment.region, embedded=True
    )
    again = Environment.model_validate(yaml.safe_load(render(from_observed(observed), origin="the test")))

    assert known(again) == known(environment)
    assert observed.unasked == ()


def test_the_stack_tells_the_environment_that_it_was_made_of(deployed: Deployed) -> None:
    environment = deployed.environment

    found = deployed_environment(stack_name=deployed.stack, region=environment.region, client=deployed.cloud.reach)

    assert found.state == "read"
    assert found.environment is not None
    assert compare(found.environment, environment) == []


def test_diff_compares_a_file_with_the_stack_through_its_endpoint(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = imported_as_written(deployed).model_dump(mode="json", exclude_none=True)
    monkeypatch.setenv("HOLDFAST_PORT", deployed.cloud.reach["endpoint_url"].rpartition(":")[2])
    monkeypatch.setenv("HOLDFAST_HOME", str(deployed.cloud.home))
    for name, value in deployed.of_diff.items():
        monkeypatch.setenv(name, value)
    document["storage"]["lustre"]["capacity_gib"] += 4800
    gone = document["cluster"]["instance_groups"].pop()["name"]
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(document))
    app = typer.Typer()
    app.command()(diff.diff)

    answer = CliRunner().invoke(app, [str(path), "--json"])

    assert answer.exit_code == 1
    assert [(change["path"], change["effect"]) for change in json.loads(answer.stdout)["changes"]] == [
        (f"cluster.instance_groups.{gone}", "replaces the instance group"),
        ("storage.lustre.capacity_gib", "in place"),
    ]


def test_an_environment_is_changed_failed_taken_back_and_deleted(deployed: Deployed) -> None:
    cloud, found, stack = deployed.cloud, deployed.document, deployed.stack
    found["cluster"]["instance_groups"][-1]["instance_count"] += 1
    _, changed = synthesise(found, cloud, deployed.folder)
    assert cloud.update(stack, changed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)
    assert targets(deployed) == wanted(changed) != wanted(deployed.template)

    failing = copy.deepcopy(changed)
    cluster_of(failing)["InstanceGroups"][-1]["InstanceCount"] += 1
    failing["Resources"]["Broken"] = {**BROKEN, "DependsOn": ["ClusterEB0386A7"]}
    assert wanted(failing) != wanted(changed)
    assert cloud.update(stack, failing)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert any("Broken" in line for line in cloud.why(stack))
    assert targets(deployed) == wanted(changed)

    gone = cloud.delete(stack)
    assert gone["StackStatus"] == "DELETE_COMPLETE", cloud.why(gone["StackId"])
    assert found["name"] not in clusters(cloud)
    assert named(found) <= still_there(cloud)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["minimal", "eks-p5"])
def test_a_failed_creation_leaves_nothing(name: str, cloud: Cloud, tmp_path: Path) -> None:
    stack, template = synthesise(document(name, cloud, stack=f"f-{name}"), cloud, tmp_path)
    template["Resources"]["Broken"] = {**BROKEN, "DependsOn": ["ClusterEB0386A7"]}
    before = volumes(cloud)

    assert cloud.create(stack, template)["StackStatus"] == "ROLLBACK_COMPLETE", cloud.why(stack)

    assert f"f-{name}" not in clusters(cloud)
    assert volumes(cloud) == before
    cloud.delete(stack)


@pytest.mark.e2e
def test_a_new_cluster_name_replaces_the_cluster_and_the_old_one_goes(cloud: Cloud, tmp_path: Path) -> None:
    found = document("minimal", cloud, stack="r-minimal")
    stack, template = synthesise(found, cloud, tmp_path)
    assert cloud.create(stack, template)["StackStatus"] == "CREATE_COMPLETE", cloud.why(stack)

    found["cluster"]["name"] = "r-other"
    _, renamed = synthesise(found, cloud, tmp_path)
    assert cloud.update(stack, renamed)["StackStatus"] == "UPDATE_COMPLETE", cloud.why(stack)

    assert {"r-minimal", "r-other"} & clusters(cloud) == {"r-other"}
    cloud.delete(stack)


@pytest.mark.e2e
def test_two_environments_are_deployed_at_the_same_time(cloud: Cloud, tmp_path: Path) -> None:
    made = {}
    for name in ("minimal", "slurm-p5"):
        folder = tmp_path / name
        folder.mkdir()
        made[name] = synthesise(document(name, cloud, stack=f"p-{name}"), cloud, folder)
    stacks = cloud.of("cloudformation")

    for stack, template in made.values():
        stacks.create_stack(StackName=stack, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"])
    ended = {stack: cloud.settled(stack)["StackStatus"] for stack, _ in made.values()}

    assert set(ended.values()) == {"CREATE_COMPLETE"}, [cloud.why(stack) for stack in ended]
    assert {"p-minimal", "p-slurm-p5"} <= clusters(cloud)
    for stack in ended:
        assert cloud.delete(stack)["StackStatus"] == "DELETE_COMPLETE"


@pytest.mark.e2e
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


def test_a_stack_that_is_not_there_is_told_from_one_that_cannot_be_asked(cloud: Cloud) -> None:
    absent = deployed_environment(stack_name="holdfast-nobody", region=cloud.region, client=cloud.reach)
    silent = deployed_environment(
        stack_name="holdfast-nobody",
        region=cloud.region,
        client={**cloud.reach, "endpoint_url": "http://localhost:9"},
        timeout_s=0.2,
    )

    assert (absent.state, absent.why) == ("absent", f"there is no stack holdfast-nobody in {cloud.region}")
    assert silent.state == "not checked"
    assert "localhost:9" in silent.why
