"""An environment's stack on an embedded AWS of a test, deployed as the CDK CLI does it, without the CDK CLI."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
from botocore.exceptions import WaiterError
from buckets import make_bucket

from holdfast.config import Environment
from holdfast.localcloud.aws import EmbeddedAws
from holdfast_stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
ASSETS = "cdk-hnb659fds-assets"


class Cloud:
    """Clients of one embedded AWS, in one region."""

    def __init__(self, running: EmbeddedAws, *, region: str = "us-west-2") -> None:
        self.endpoint, self.region, self._made = running.endpoint, region, {}
        self.reach, self.home = running.client_arguments, running.home

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name=self.region, **self.reach)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()


def deploy(cloud: Cloud, environment: Environment, *, outdir: Path) -> None:
    """What the CDK CLI does: synthesise, upload what the template refers to, create the stack."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context, analytics_reporting=False, outdir=str(outdir))
    HyperPodStack(app, environment.stack_name, environment=environment)
    app.synth()
    template = upload(cloud, outdir, environment)
    cloud.client("ssm").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True
    )
    stacks = cloud.client("cloudformation")
    stacks.create_stack(
        StackName=environment.stack_name,
        TemplateURL=f"{cloud.endpoint}/{template}",
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    waiter = stacks.get_waiter("stack_create_complete")
    try:
        waiter.wait(StackName=environment.stack_name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    except WaiterError as error:
        raise AssertionError(failures(stacks, environment.stack_name)) from error


def failures(stacks: Any, name: str) -> str:
    """Why resources of a stack were not made."""
    pages = stacks.get_paginator("describe_stack_events").paginate(StackName=name)
    events = [event for page in pages for event in page["StackEvents"]]
    return "; ".join(
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}"
        for event in events
        if event["ResourceStatus"] == "CREATE_FAILED"
    )


def upload(cloud: Cloud, outdir: Path, environment: Environment) -> str:
    """Put the assets where the template looks for them; the place of the template itself comes back."""
    s3 = cloud.client("s3")
    bucket = f"{ASSETS}-{environment.account}-{environment.region}"
    if bucket not in {each["Name"] for each in s3.list_buckets()["Buckets"]}:
        make_bucket(s3, bucket, region=environment.region)
    manifest = json.loads((outdir / f"{environment.stack_name}.assets.json").read_text())
    for asset in manifest["files"].values():
        source = outdir / asset["source"]["path"]
        body = zipped(source) if asset["source"]["packaging"] == "zip" else source.read_bytes()
        for destination in asset["destinations"].values():
            s3.put_object(Bucket=bucket, Key=destination["objectKey"], Body=body)
    s3.put_object(
        Bucket=bucket, Key="template.json", Body=(outdir / f"{environment.stack_name}.template.json").read_bytes()
    )
    return f"{bucket}/template.json"


def zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()
