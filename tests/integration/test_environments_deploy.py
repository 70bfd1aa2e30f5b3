"""Every environment, really deployed on the embedded AWS: made, asked about, changed, failed, taken back, deleted."""

import io
import json
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import pytest
import yaml
from existing_things import ExistingThings

from holdfast.config import load
from holdfast.localcloud.aws import serve
from stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))
ACCOUNT, REGION = "123456789012", "us-west-2"
BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
BROKEN = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.1.0.0/24"}}


class Cloud:
    """One embedded AWS with what `cdk bootstrap` would have made of what is needed here."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint, self._clients = endpoint, {}
        self._client = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name=REGION).client
        self.of("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.of("iam").create_role(RoleName="PlatformAdmin", AssumeRolePolicyDocument="{}")  # full.yaml names it
        self.of("cloudwatch").put_metric_alarm(  # and this
            AlarmName="training-throughput", Namespace="own", MetricName="steps", Statistic="Sum", Period=60,
            EvaluationPeriods=1, Threshold=1, ComparisonOperator="LessThanThreshold",
        )  # fmt: skip
        self.of("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")

    def of(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._client(service, endpoint_url=self._endpoint)
        return self._clients[service]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def publish(self, assembly: Path) -> None:
        """Put the file assets into the bootstrap's bucket, as the CLI does; layers of binaries are left out."""
        (manifest,) = assembly.glob("*.assets.json")
        for asset in json.loads(manifest.read_text())["files"].values():
            source = assembly / asset["source"]["path"]
            body = source.read_bytes() if source.is_file() else zipped(source)
            (place,) = asset["destinations"].values()
            key = place["objectKey"]
            if len(body) < 4_000_000:
                self.of("s3").put_object(Bucket=BUCKET, Key=key, Body=body)

    def create(self, name: str, template: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        body = json.dumps(template)
        self.of("cloudformation").create_stack(
            StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_IAM"], **more
        )
        return self.settled(name)

    def update(self, name: str, template: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps(template)
        self.of("cloudformation").update_stack(StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        return self.settled(name)

    def delete(self, name: str) -> dict[str, Any]:
        stack_id = self.of("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.of("cloudformation").delete_stack(StackName=name)
        return self.settled(stack_id)

    def settled(self, name: str) -> dict[str, Any]:
        """The stack, once nothing happens to it any more."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            (stack,) = self.of("cloudformation").describe_stacks(StackName=name)["Stacks"]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                return dict(stack)
            time.sleep(0.05)
        raise TimeoutError(name)

    def why(self, name: str) -> list[str]:
        """What failed, in CloudFormation's words."""
        pages = self.of("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name)
        return [
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}"
            for page in pages
            for event in page["StackEvents"]
            if event["ResourceStatus"].endswith("_FAILED")
        ]

    def network(self) -> dict[str, str | list[str]]:
        """A VPC that is there already, for environments with an existing one."""
        ec2 = self.of("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        zones = (("10.1.0.0/17", "a"), ("10.1.128.0/28", "a"), ("10.1.129.0/28", "b"))
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"{REGION}{zone}")["Subnet"]["SubnetId"]
            for cidr, zone in zones
        ]
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        group = ec2.create_security_group(VpcId=vpc, GroupName="own", Description="own")["GroupId"]
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=rule)
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=rule)
        return {
            "vpc_id": vpc, "vpc_cidr": "10.1.0.0/16", "subnet_id": subnets[0], "subnet_cidr": "10.1.0.0/17",
            "security_group_id": group, "route_table_id": table, "control_plane_subnet_ids": subnets[1:],
        }  # fmt: skip


def zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context(), serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as aws:
        made = Cloud(aws.endpoint)
        yield made
        made.close()


def document(name: str, cloud: Cloud, *, stack: str) -> dict[str, Any]:
    """An environment as it would be deployed on the embedded AWS, under a name of its own."""
    text = (ROOT / "environments" / f"{name}.yaml").read_text().replace("111122223333", ACCOUNT)
    found: dict[str, Any] = yaml.safe_load(text)
    found |= {"name": stack, "cloud": "embedded"}
    found["cluster"]["name"] = stack
    found["storage"]["on_delete"] = "Delete"
    if "existing" in found["network"]:
        there = cloud.network()
        if name.startswith("existing"):
            ExistingThings(cloud.of, there).make(found)
        else:
            found["network"]["existing"] = there
    for group in found["cluster"]["instance_groups"]:
        if "override_vpc" in group:
            there = cloud.network()
            group["override_vpc"] = {
                "subnet_ids": [there["subnet_id"]], "security_group_ids": [there["security_group_id"]]
            }  # fmt: skip
    return found


def synthesise(found: Mapping[str, Any], cloud: Cloud, folder: Path) -> tuple[str, dict[str, Any]]:
    """The stack's name and template, with its assets where CloudFormation expects them."""
    path = folder / f"{found['name']}.yaml"
    path.write_text(yaml.safe_dump(dict(found)))
    environment = load(path)
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context, analytics_reporting=False, outdir=str(folder / "cdk.out"))
    HyperPodStack(app, environment.stack_name, environment=environment, folder=ROOT / "environments")
    assembly = Path(app.synth().directory)
    cloud.publish(assembly)
    return environment.stack_name, json.loads((assembly / f"{environment.stack_name}.template.json").read_text())


def cluster_of(template: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = [r for r in template["Resources"].values() if r["Type"] == "AWS::SageMaker::Cluster"]
    return dict(found["Properties"])


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_made_changed_failed_taken_back_and_deleted(name: str, cloud: Cloud, tmp_path: Path) -> None:
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


def clusters(cloud: Cloud) -> set[str]:
    return {found["ClusterName"] for found in cloud.of("sagemaker").list_clusters()["ClusterSummaries"]}


def volumes(cloud: Cloud) -> set[str]:
    return {found["FileSystemId"] for found in cloud.of("fsx").describe_file_systems()["FileSystems"]}
