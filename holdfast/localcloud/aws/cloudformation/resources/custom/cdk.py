"""The CDK's custom resources: on AWS Lambda functions, here handlers that do the same."""

# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument
import io
import uuid
import zipfile
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation.resources.custom.functions import StackFunction
from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    Made,
    Properties,
    ResourceContext,
    ResourceHandler,
    ignore_gone,
)


def _yes(value: Any) -> bool:
    return str(value).lower() == "true"


class BucketDeployment(ResourceHandler):
    type = "Custom::CDKBucketDeployment"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        made = Made(physical_id=f"aws.cdk.s3deployment.{uuid.uuid4()}")
        context.note(made.physical_id)
        return self._deploy(context, made, properties)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        if not _yes(properties.get("RetainOnDelete", True)) and self._place(old) != self._place(properties):
            empty(context, old["DestinationBucketName"], prefix=self._prefix(old))
        return self._deploy(context, made, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        if not _yes(properties.get("RetainOnDelete", True)):
            empty(context, properties["DestinationBucketName"], prefix=self._prefix(properties))

    def _deploy(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        client, bucket, prefix = context.client("s3"), properties["DestinationBucketName"], self._prefix(properties)
        function = StackFunction(context, properties)
        for source, key in zip(properties["SourceBucketNames"], properties["SourceObjectKeys"], strict=True):
            function.must("s3:GetObject", f"arn:aws:s3:::{source}/{key}")
        function.must("s3:ListBucket", f"arn:aws:s3:::{bucket}")
        written = {f"{prefix}{name}": content for name, content in self._contents(context, properties)}
        for key, content in written.items():
            function.must("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}")
            client.put_object(Bucket=bucket, Key=key, Body=content)
        if _yes(properties.get("Prune", True)):
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            stale = [
                entry["Key"] for page in pages for entry in page.get("Contents", []) if entry["Key"] not in written
            ]
            for key in stale:
                function.must("s3:DeleteObject", f"arn:aws:s3:::{bucket}/{key}")
                client.delete_object(Bucket=bucket, Key=key)
        return Made(
            physical_id=made.physical_id,
            attributes={
                "DestinationBucketArn": properties.get("DestinationBucketArn", f"arn:aws:s3:::{bucket}"),
                "SourceObjectKeys": properties["SourceObjectKeys"]
                if _yes(properties.get("OutputObjectKeys", True))
                else [],
            },
        )

    @staticmethod
    def _contents(context: ResourceContext, properties: Properties) -> list[tuple[str, bytes]]:
        sources = list(zip(properties["SourceBucketNames"], properties["SourceObjectKeys"], strict=True))
        markers = properties.get("SourceMarkers") or [{} for _ in sources]
        result = []
        for (bucket, key), replaced in zip(sources, markers, strict=True):
            body = context.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
            if not _yes(properties.get("Extract", True)):
                result.append((key.rsplit("/", 1)[-1], body))
                continue
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                result.extend((name, _marked(archive.read(name), replaced)) for name in names)
        return result

    @staticmethod
    def _prefix(properties: Properties) -> str:
        prefix = str(properties.get("DestinationBucketKeyPrefix", "")).strip("/")
        return f"{prefix}/" if prefix else ""

    def _place(self, properties: Properties) -> tuple[str, str]:
        return properties["DestinationBucketName"], self._prefix(properties)


def _marked(content: bytes, markers: dict[str, str]) -> bytes:
    for marker, value in markers.items():
        content = content.replace(marker.encode(), str(value).encode())
    return content


class AutoDeleteObjects(ResourceHandler):
    """Empties a bucket before its deletion."""

    type = "Custom::S3AutoDeleteObjects"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        return Made(physical_id=properties["BucketName"])

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        if old["BucketName"] != properties["BucketName"]:
            empty(context, old["BucketName"])
        return self.create(context, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        bucket = f"arn:aws:s3:::{properties['BucketName']}"
        function = StackFunction(context, properties)
        for action, resource in (("s3:ListBucket", bucket), ("s3:DeleteObject", f"{bucket}/*")):
            function.must(action, resource)
        empty(context, properties["BucketName"])


class RestrictDefaultSecurityGroup(ResourceHandler):
    """Removes the rules of a VPC's default security group; restores them on deletion."""

    type = "Custom::VpcRestrictDefaultSG"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        group = properties["DefaultSecurityGroupId"]
        for direction, permission in self._rules(context, group).items():
            self._quietly(getattr(context.client("ec2"), f"revoke_security_group_{direction}"), group, permission)
        return Made(physical_id=f"restrict-{group}")

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        if properties["DefaultSecurityGroupId"] != old["DefaultSecurityGroupId"]:
            self.delete(context, made, old)
            return self.create(context, properties)
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        group = properties["DefaultSecurityGroupId"]
        for direction, permission in self._rules(context, group).items():
            self._quietly(getattr(context.client("ec2"), f"authorize_security_group_{direction}"), group, permission)

    @staticmethod
    def _rules(context: ResourceContext, group: str) -> dict[str, dict[str, Any]]:
        return {
            "ingress": {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "UserId": context.account}]},
            "egress": {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
        }

    @staticmethod
    def _quietly(call: Any, group: str, permission: dict[str, Any]) -> None:
        try:
            ignore_gone(call, GroupId=group, IpPermissions=[permission])
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidPermission.Duplicate":
                raise


class InertHandler(ResourceHandler):
    def __init__(self, resource_type: str, *, name: str = "", arn: str = "", ref_is_arn: bool = False) -> None:
        self.type, self._name, self._arn, self._ref_is_arn = resource_type, name, arn, ref_is_arn

    @property
    def custom_name(self) -> str:
        return self._name

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        name = properties.get(self.custom_name) or context.name(length=64)
        return self._made(context, str(name))

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        return made

    def _made(self, context: ResourceContext, name: str) -> Made:
        if not self._arn:
            return Made(physical_id=name)
        arn = self._arn.format(region=context.region, account=context.account, name=name)
        known = dict.fromkeys(("Arn", "FunctionArn", "LayerVersionArn"), arn) | {"Version": "1"}
        return Made(physical_id=arn if self._ref_is_arn else name, attributes=known)


def empty(context: ResourceContext, bucket: str, *, prefix: str = "", keep: frozenset[str] = frozenset()) -> None:
    """Delete every version of every object under a prefix. A missing bucket is no error."""
    client = context.client("s3")
    try:
        pages = list(client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix))
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchBucket", "404"):
            return
        raise
    found = [
        {"Key": entry["Key"], "VersionId": entry["VersionId"]}
        for page in pages
        for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if entry["Key"] not in keep
    ]
    for start in range(0, len(found), 1000):
        client.delete_objects(Bucket=bucket, Delete={"Objects": found[start : start + 1000], "Quiet": True})
