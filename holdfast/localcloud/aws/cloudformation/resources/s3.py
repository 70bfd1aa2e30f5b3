"""S3 buckets: one call for each setting."""

# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
from collections.abc import Callable
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    ignore_gone,
)

Setting = tuple[str, str, Callable[[Any], Any], str]


def _encryption(value: Properties) -> dict[str, Any]:
    renamed = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
    return {
        "Rules": [
            {renamed.get(key, key): item for key, item in rule.items()}
            for rule in value["ServerSideEncryptionConfiguration"]
        ]
    }


def _lifecycle(value: Properties) -> dict[str, Any]:
    return {"Rules": [_lifecycle_rule(rule) for rule in value["Rules"]]}


RULE_KEYS = frozenset(
    {
        "AbortIncompleteMultipartUpload",
        "ExpirationDate",
        "ExpirationInDays",
        "ExpiredObjectDeleteMarker",
        "Id",
        "NoncurrentVersionExpiration",
        "NoncurrentVersionExpirationInDays",
        "NoncurrentVersionTransitions",
        "Prefix",
        "Status",
        "Transitions",
    }
)


def _lifecycle_rule(rule: Properties) -> dict[str, Any]:
    unknown = sorted(rule.keys() - RULE_KEYS)
    if unknown:
        raise ResourceError(f"AWS::S3::Bucket: the embedded AWS cannot set {', '.join(unknown)} of a rule")
    result: dict[str, Any] = {"Status": rule["Status"], "Filter": {"Prefix": rule.get("Prefix", "")}}
    result |= {"ID": rule["Id"]} if "Id" in rule else {}
    expiration = {
        "ExpirationInDays": "Days",
        "ExpirationDate": "Date",
        "ExpiredObjectDeleteMarker": "ExpiredObjectDeleteMarker",
    }
    expires = {member: rule[key] for key, member in expiration.items() if key in rule}
    result |= {"Expiration": expires} if expires else {}
    for key in ("AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"):
        result |= {key: rule[key]} if key in rule else {}
    if "NoncurrentVersionExpirationInDays" in rule:
        result["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule["NoncurrentVersionExpirationInDays"]}
    days = {"TransitionInDays": "Days", "TransitionDate": "Date"}
    moves = [{days.get(key, key): item for key, item in move.items()} for move in rule.get("Transitions", [])]
    result |= {"Transitions": moves} if moves else {}
    old = [
        {"NoncurrentDays": move["TransitionInDays"], "StorageClass": move["StorageClass"]}
        for move in rule.get("NoncurrentVersionTransitions", [])
    ]
    return result | ({"NoncurrentVersionTransitions": old} if old else {})


def _logging(value: Properties) -> dict[str, Any]:
    target = {"TargetBucket": value.get("DestinationBucketName", ""), "TargetPrefix": value.get("LogFilePrefix", "")}
    return {"LoggingEnabled": target}


def _tags(value: list[dict[str, str]]) -> dict[str, Any]:
    # Only AWS itself may put aws: tags on a bucket, and to the embedded S3 this handler is a caller like any other.
    return {"TagSet": [tag for tag in value if not tag["Key"].startswith("aws:")]}


def _same(value: Any) -> Any:
    return value


SETTINGS: dict[str, Setting] = {
    "BucketEncryption": ("bucket_encryption", "ServerSideEncryptionConfiguration", _encryption, ""),
    "CorsConfiguration": ("bucket_cors", "CORSConfiguration", lambda value: {"CORSRules": value["CorsRules"]}, ""),
    "LifecycleConfiguration": (
        "bucket_lifecycle_configuration",
        "LifecycleConfiguration",
        _lifecycle,
        "bucket_lifecycle",
    ),
    "LoggingConfiguration": ("bucket_logging", "BucketLoggingStatus", _logging, "-"),
    "OwnershipControls": ("bucket_ownership_controls", "OwnershipControls", _same, ""),
    "PublicAccessBlockConfiguration": ("public_access_block", "PublicAccessBlockConfiguration", _same, ""),
    "Tags": ("bucket_tagging", "Tagging", _tags, ""),
    "VersioningConfiguration": ("bucket_versioning", "VersioningConfiguration", _same, "-"),
}
"""Property -> (put_<call>, its member, how the value is rewritten, delete_<call> where it differs; "-" for none)."""


class Bucket(ResourceHandler):
    """A bucket with its settings. A bucket with objects is not deleted."""

    type = "AWS::S3::Bucket"

    @property
    def custom_name(self) -> str:
        return "BucketName"

    def existing(self, context: ResourceContext, name: str) -> Made | None:
        found = ignore_gone(context.client("s3").get_bucket_location, Bucket=name)
        return None if found is None else self._made(context, name)

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        self._refuse_unknown(properties)
        name = properties.get("BucketName") or context.name(length=63, lower=True)
        where = (
            {}
            if context.region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": context.region}}
        )
        context.client("s3").create_bucket(Bucket=name, **where)
        context.note(name)
        self._settle(context, name, properties, {})
        return self._made(context, name)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self._refuse_unknown(properties)
        self._settle(context, made.physical_id, properties, old)
        return self._made(context, made.physical_id)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        ignore_gone(context.client("s3").delete_bucket, Bucket=made.physical_id)

    @staticmethod
    def _refuse_unknown(properties: Properties) -> None:
        unknown = sorted(properties.keys() - SETTINGS.keys() - {"BucketName", "AccessControl"})
        if unknown:
            raise ResourceError(
                f"AWS::S3::Bucket: the embedded AWS does not support {', '.join(unknown)}; "
                f"it supports {', '.join(sorted(SETTINGS))}"
            )

    def _settle(self, context: ResourceContext, name: str, properties: Properties, old: Properties) -> None:
        client = context.client("s3")
        for key, (call, member, rewrite, remove) in SETTINGS.items():
            if properties.get(key) == old.get(key):
                continue
            if key in properties:
                value = rewrite(properties[key])
                if value != {"TagSet": []}:
                    getattr(client, f"put_{call}")(Bucket=name, **{member: value})
            elif key == "VersioningConfiguration":
                client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Suspended"})
            elif key == "LoggingConfiguration":
                client.put_bucket_logging(Bucket=name, BucketLoggingStatus={})
            else:
                getattr(client, f"delete_{remove or call}")(Bucket=name)

    @staticmethod
    def _made(context: ResourceContext, name: str) -> Made:
        return Made(
            physical_id=name,
            attributes={
                "Arn": f"arn:aws:s3:::{name}",
                "DomainName": f"{name}.s3.amazonaws.com",
                "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.amazonaws.com",
                "RegionalDomainName": f"{name}.s3.{context.region}.amazonaws.com",
                "WebsiteURL": f"http://{name}.s3-website-{context.region}.amazonaws.com",
            },
        )


class BucketPolicy(ResourceHandler):
    type = "AWS::S3::BucketPolicy"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        document = json.dumps(properties["PolicyDocument"])
        context.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=document)
        return Made(physical_id=properties["Bucket"], attributes={"Bucket": properties["Bucket"]})

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        ignore_gone(context.client("s3").delete_bucket_policy, Bucket=properties["Bucket"])
