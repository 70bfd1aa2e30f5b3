"""Buckets of lifecycle scripts in an app's templates."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.model import App, references_in, text_of

BUCKET = "AWS::S3::Bucket"


def buckets_in(app: App, uri: Node) -> Iterator[Resource]:
    """Buckets of the app in a URI, by reference or by name."""
    yield from {each.resource for each in references_in(uri.value) if each.resource.type == BUCKET}
    text = text_of(uri.value) or ""
    for bucket, node in app.each(BUCKET):
        name = text_of(node.get("BucketName").value)
        if name and text.startswith((f"s3://{name}/", f"s3://{name}")):
            yield bucket


def scripts_uris(app: App) -> Iterator[Node]:
    """SourceS3Uri of each group."""
    for _cluster, properties in app.each("AWS::SageMaker::Cluster"):
        for group in properties.get("InstanceGroups").items() or ():
            yield group.get("LifeCycleConfig", "SourceS3Uri")


def scripts_buckets(app: App) -> list[Resource]:
    return list(dict.fromkeys(bucket for uri in scripts_uris(app) for bucket in buckets_in(app, uri)))


def scripts_bucket(app: App, path: str) -> Resource | None:
    """Bucket of the app in the SourceS3Uri at a path."""
    uri = next((each for each in scripts_uris(app) if each.path == path), None)
    return None if uri is None else next(buckets_in(app, uri), None)
