"""Environments on the embedded AWS, without the CDK CLI: synthesised, published, deployed, deleted."""

import contextlib
import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import yaml
from buckets import make_bucket
from existing_things import ExistingThings

from holdfast.config import load
from holdfast_stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))
ACCOUNT, REGION = "123456789012", "us-west-2"


class Cloud:
    """One embedded AWS with what `cdk bootstrap` would have made of what is needed here."""

    def __init__(self, reach: dict[str, str], *, region: str = REGION, home: Path | None = None) -> None:
        self.reach, self.region, self.home = reach, region, home
        self._clients: dict[str, Any] = {}
        self._elsewhere: dict[str, Cloud] = {}
        self._client = boto3.Session(region_name=region).client
        self.bucket = f"cdk-hnb659fds-assets-{ACCOUNT}-{region}"
        make_bucket(self.of("s3"), self.bucket, region=region)
        with contextlib.suppress(self.of("iam").exceptions.EntityAlreadyExistsException):
            self.of("iam").create_role(RoleName="PlatformAdmin", AssumeRolePolicyDocument="{}")  # full.yaml names it
        self.of("cloudwatch").put_metric_alarm(  # and this
            AlarmName="training-throughput", Namespace="own", MetricName="steps", Statistic="Sum", Period=60,
            EvaluationPeriods=1, Threshold=1, ComparisonOperator="LessThanThreshold",
        )  # fmt: skip
        self.of("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")

    def of(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._client(service, **self.reach)
        return self._clients[service]

    def at(self, region: str) -> "Cloud":
        """The same account in a region."""
        if region == self.region:
            return self
        if region not in self._elsewhere:
            self._elsewhere[region] = Cloud(self.reach, region=region, home=self.home)
        return self._elsewhere[region]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        for other in self._elsewhere.values():
            other.close()

    def publish(self, assembly: Path) -> None:
        """Put the file assets into the bootstrap's bucket, as the CLI does; layers of binaries are left out."""
        (manifest,) = assembly.glob("*.assets.json")
        for asset in json.loads(manifest.read_text())["files"].values():
            source = assembly / asset["source"]["path"]
            body = source.read_bytes() if source.is_file() else zipped(source)
            (place,) = asset["destinations"].values()
            key = place["objectKey"]
            if len(body) < 4_000_000:
                self.of("s3").put_object(Bucket=self.bucket, Key=key, Body=body)

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
            time.sleep(0.2)  # each question costs the embedded AWS as much as a step of the deployment
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
        zones = (("10.1.0.0/17", "a"), ("10.1.128.0/28", "a"), ("10.1.129.0/28", "b"), ("10.1.130.0/28", "a"))
        *subnets, public = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"{self.region}{zone}")["Subnet"]["SubnetId"]
            for cidr, zone in zones
        ]
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        address = ec2.allocate_address()["AllocationId"]
        nat = ec2.create_nat_gateway(SubnetId=public, AllocationId=address)["NatGateway"]["NatGatewayId"]
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnets[0])
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
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


def document(name: str, cloud: Cloud, *, stack: str, on_delete: str = "Delete") -> dict[str, Any]:
    """An environment as it would be deployed on the embedded AWS, under a name of its own."""
    text = (ROOT / "environments" / f"{name}.yaml").read_text().replace("111122223333", ACCOUNT)
    found: dict[str, Any] = yaml.safe_load(text)
    found |= {"name": stack, "cloud": "embedded"}
    found["cluster"]["name"] = stack
    found["storage"]["on_delete"] = on_delete
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
