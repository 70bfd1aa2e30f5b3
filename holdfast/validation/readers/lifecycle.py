"""Reader of lifecycle scripts: files that an app delivers under the URI of an instance group."""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Reference, Resource, Text, Values
from holdfast.validation.model import Lifecycle, Script
from holdfast.validation.readers.properties import read_item
from holdfast.validation.shell import shell_mistake

BUCKET_DEPLOYMENT = "Custom::CDKBucketDeployment"
_ASSET = re.compile(r"([0-9a-f]{64}|[0-9a-f]{8,})\.zip")
_NEEDED = "s3://sagemaker-"
"""What rules ask of a URI's beginning; a URI of which less is known cannot be judged."""


class LifecycleReader:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._scripts_by_uri: dict[str, tuple[str, Any]] = {}

    def lifecycle(self, node: Node) -> Lifecycle:
        uri = node.get("SourceS3Uri")
        # Groups share what is under one URI, so that each file is judged once.
        if uri.token not in self._scripts_by_uri:
            self._scripts_by_uri[uri.token] = (uri.path, self._scripts(uri))
        place, scripts = self._scripts_by_uri[uri.token]
        found = read_item(Lifecycle, node, source_s3_uri=_uri(uri), scripts=scripts)
        return found.changed(places={**found.places, "scripts": place})

    def _scripts(self, uri: Node) -> Any:
        """Files under a URI, if one delivery puts all of them there."""
        requested = _bucket_and_prefix(uri)
        if requested is None:
            return UNRESOLVED
        files: dict[str, str] = {}
        delivered = False
        for deployment in self._values.graph.of_type(BUCKET_DEPLOYMENT):
            properties = self._values.properties(deployment)
            prefix = properties.get("DestinationBucketKeyPrefix").text()
            bucket = properties.get("DestinationBucketName")
            if not _same_bucket(bucket, requested[0]):
                continue
            below = None if prefix is UNRESOLVED else _below(requested[1], prefix or "")
            if below is None:
                continue
            content = self._content(deployment)
            if content is None:
                return UNRESOLVED
            delivered = True
            files |= {name.removeprefix(below): text for name, text in content.items() if name.startswith(below)}
        if not delivered:
            return UNRESOLVED
        return tuple(
            Script(path=uri.path, name=name, text=text, mistake=shell_mistake(text) if name.endswith(".sh") else None)
            for name, text in sorted(files.items())
        )

    def _content(self, deployment: Resource) -> Mapping[str, str] | None:
        keys = self._values.properties(deployment).get("SourceObjectKeys").items()
        found: dict[str, str] = {}
        for key in keys or ():
            text = key.value.end if isinstance(key.value, Text) else key.text()
            match = _ASSET.search(text) if isinstance(text, str) else None
            files = deployment.template.files(match[1]) if match else None
            if files is None:
                return None
            found |= files
        return found if keys else None


def _uri(node: Node) -> Any:
    """URI; with gaps, if the part before them has the bucket and prefix."""
    if isinstance(node.value, Text):
        start = node.value.start
        decided = len(start) > len(_NEEDED) or not _NEEDED.startswith(start)
        return node.value.with_gaps() if decided else UNRESOLVED
    return node.text()


def _bucket_and_prefix(uri: Node) -> tuple[object, str] | None:
    if isinstance(uri.value, Text):
        parts = uri.value.parts
        if len(parts) in (2, 3) and parts[0] == "s3://" and isinstance(parts[1], Reference):
            rest = parts[2] if len(parts) == 3 else ""
            return (parts[1].resource, rest.strip("/")) if isinstance(rest, str) else None
        scheme, _, rest = uri.value.with_gaps().partition("://")
    else:
        scheme, _, rest = (uri.text() if isinstance(uri.value, str) else "").partition("://")
    bucket, _, prefix = rest.partition("/")
    return (bucket, prefix.strip("/")) if scheme == "s3" else None


def _same_bucket(node: Node, bucket: object) -> bool:
    if isinstance(bucket, Resource):
        return node.resource("AWS::S3::Bucket") is bucket
    value = node.name()
    return (value.with_gaps() if isinstance(value, Text) else value) == bucket


def _below(requested: str, prefix: str) -> str | None:
    """Prefix of delivered names under ``requested``; None if none can be."""
    prefix = prefix.strip("/")
    if requested == prefix:
        return ""
    if not prefix or requested.startswith(f"{prefix}/"):
        return f"{requested.removeprefix(prefix).strip('/')}/"
    return None
