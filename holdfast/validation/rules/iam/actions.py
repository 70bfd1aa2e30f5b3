"""5xx: resources that policies name, of the kind that their actions work on."""

import re
from collections.abc import Iterator

from holdfast.validation.cloudformation import Node
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import Grant, resources_of
from holdfast.validation.model import App, Deployment, text_of
from holdfast.validation.rules.iam.statements import all_grants


@rule(
    "HF533",
    title="Policies name resources of the kind that their actions work on",
    each=App,
    source="S3 user guide, 'Policies and permissions: resources'",
)
def resources_of_actions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    s3:GetObject is about objects, arn:aws:s3:::bucket/*, and s3:ListBucket about the bucket, arn:aws:s3:::bucket. A
    statement whose only resources are of the other kind allows nothing.
    """
    for grant in all_grants(app):
        if grant.all_but or not grant.resources:
            continue
        yield from _of_another_service(grant)
        objects = [each for each in grant.actions if re.fullmatch(r"s3:(get|put|delete)object", each)]
        buckets = [each for each in grant.actions if each in ("s3:listbucket", "s3:getbucketlocation")]
        arns = [_bucket_part(entry) for entry in resources_of(grant)]
        if None in arns:
            continue
        if objects and not any(arn == "*" or "/" in str(arn) or str(arn).endswith("*") for arn in arns):
            yield refused(
                f"{grant.path}.Resource",
                f"{objects[0]} on a bucket as a whole",
                allowed="objects: the bucket's ARN and /*",
                fix="add a resource that ends with /*",
            )
        if buckets and all("/" in str(arn) for arn in arns):
            yield refused(
                f"{grant.path}.Resource",
                f"{buckets[0]} on objects",
                allowed="the bucket's ARN",
                fix="add the bucket's ARN without /*",
            )


_WITH_ARNS = {"ec2", "s3", "kms", "fsx", "secretsmanager", "sagemaker", "eks", "sns", "sqs", "lambda", "ecr", "iam"}


def _of_another_service(grant: Grant) -> Iterator[Broken]:
    services = set()
    for text in grant.resources:
        parts = text.split(":")
        if parts[0] != "arn" or len(parts) < 6 or "$" in parts[2] or "*" in parts[2]:
            return
        services.add(parts[2])
    wrong = [
        each
        for each in grant.actions
        if (own := each.partition(":")[0]) in _WITH_ARNS and services and own not in services
    ]
    if wrong and services <= _WITH_ARNS and len(wrong) == len(grant.actions):
        yield refused(
            f"{grant.path}.Resource",
            f"{wrong[0]} on resources of {', '.join(sorted(services))}",
            allowed=f"resources of {wrong[0].partition(':')[0]}",
            fix='write the resources that the actions are about, or "*"',
        )


def _bucket_part(entry: Node) -> str | None:
    """Bucket of an S3 resource, with /... for objects; None if unknown."""
    bucket = entry.resource("AWS::S3::Bucket")
    if bucket is not None:
        return bucket.logical_id
    text = text_of(entry.value)
    if text is None:
        return None
    return text if text == "*" else text.removeprefix("arn:aws:s3:::") if ":s3:::" in text or "${" in text else "*"
