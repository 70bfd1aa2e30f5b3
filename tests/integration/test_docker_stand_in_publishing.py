"""An image asset, published by the unmodified CDK CLI to the embedded AWS."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import pytest

from holdfast.localcloud.aws import serve
from holdfast.localcloud.docker_stand_in import SCRIPT
from holdfast_constructs import ContainerImage

pytestmark = pytest.mark.e2e

BUCKET = "cdk-hnb659fds-assets-123456789012-us-west-2"
IMAGES = "cdk-hnb659fds-container-assets-123456789012-us-west-2"
VERSION = "/cdk-bootstrap/hnb659fds/version"


@pytest.fixture
def assembly(tmp_path: Path, repository: Path) -> Path:
    """A stack that names an image."""
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), analytics_reporting=False)
    stack = cdk.Stack(app, "Demo", env=cdk.Environment(account="123456789012", region="us-west-2"))
    image = ContainerImage.from_asset(
        stack, "Training", directory=repository / "containers", file="training/Dockerfile"
    )
    cdk.CfnWaitConditionHandle(stack, "Something")
    cdk.CfnOutput(stack, "Uri", value=image.uri)
    return Path(app.synth().directory)


def test_the_cdk_cli_publishes_an_image_that_its_tag_and_its_digest_lead_to(
    assembly: Path, tmp_path: Path, repository: Path
) -> None:
    with serve(home=tmp_path / "cloud", hyperpod="simulated") as aws:
        variables = {
            "AWS_ENDPOINT_URL": aws.endpoint,
            "AWS_ENDPOINT_URL_S3_FOR_CLOUDFORMATION": aws.endpoint,
            "AWS_REGION": "us-west-2",
            "AWS_ACCESS_KEY_ID": aws.keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": aws.keys.secret_access_key,
            "CDK_DOCKER": str(SCRIPT),
            "HOLDFAST_HOME": str(tmp_path / "home"),
        }
        clients = {
            name: boto3.client(name, region_name="us-west-2", **aws.client_arguments)
            for name in ("s3", "ecr", "ssm", "cloudformation")
        }
        # What the bootstrap makes of what is needed here; all of it takes seconds.
        clients["s3"].create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        clients["ecr"].create_repository(repositoryName=IMAGES, imageTagMutability="IMMUTABLE")
        clients["ssm"].put_parameter(Name=VERSION, Value="30", Type="String")
        try:
            said = [deploy(assembly, repository, variables) for _ in range(2)]
            (stack,) = clients["cloudformation"].describe_stacks(StackName="Demo")["Stacks"]
            tag = stack["Outputs"][0]["OutputValue"].rpartition(":")[2]
            (image,) = clients["ecr"].describe_images(repositoryName=IMAGES)["imageDetails"]
            manifest = image_of(clients["ecr"], imageDigest=image["imageDigest"])
            assert manifest == image_of(clients["ecr"], imageTag=tag)
        finally:
            for client in clients.values():
                client.close()

    assert image["imageTags"] == [tag]
    assert "nothing was built" in json.loads(manifest)["annotations"]["holdfast.stand-in"]
    assert "nothing was built" in said[0]
    assert "no changes" in said[1]


def deploy(assembly: Path, repository: Path, variables: dict[str, str]) -> str:
    path = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"
    cli = repository / "node_modules" / "aws-cdk" / "bin" / "cdk"
    arguments = ["deploy", "Demo", "--app", str(assembly), "--require-approval", "never", "--no-notices", "--no-color"]
    result = subprocess.run(
        ["node", str(cli), *arguments],
        cwd=assembly.parent,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def image_of(ecr: Any, **image: str) -> str:
    (found,) = ecr.batch_get_image(repositoryName=IMAGES, imageIds=[image])["images"]
    return str(found["imageManifest"])
