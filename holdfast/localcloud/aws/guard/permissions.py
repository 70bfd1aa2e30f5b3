"""
Permissions of a request: IAM actions with their resources. Pure.

Source: service authorization reference. An action with unknown resource is judged on ``*``; an unknown request requires
``*``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from holdfast.session_manager import RUN_SHELL, ClusterTarget

PREFIXES = {"monitoring": "cloudwatch", "email": "ses", "tagging": "tag"}
"""IAM's prefix of services that sign with another name."""
FREE = frozenset({"sts:GetCallerIdentity"})
"""Actions that need no permission."""
EVERYTHING = "*"
TAG_KEY = re.compile(r"Tags\.member\.\d{1,3}\.Key")


@dataclass(frozen=True, kw_only=True)
class Need:
    action: str
    resources: tuple[str, ...] = (EVERYTHING,)
    """Names of one and the same resource; policies may use any."""
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RequestPlace:
    account: str
    region: str

    def arn(self, service: str, rest: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{rest}"


Lookup = Callable[[str, str], str]
"""From a kind of thing and its name to its ARN, "" where there is none."""


def needs(
    service: str, operation: str, parameters: Mapping[str, Any], *, place: RequestPlace, lookup: Lookup
) -> Iterator[Need]:
    action = f"{PREFIXES.get(service, service)}:{operation or 'UnknownOperation'}"
    if action in FREE:
        return
    context = {}
    if service == "monitoring" and isinstance(parameters.get("Namespace"), str):
        context["cloudwatch:namespace"] = parameters["Namespace"]
    tags = session_tags(parameters) if service == "sts" else {}
    if service == "sts":
        context.update(of_assumption(parameters, tags))
    for resources in _resources(service, parameters, place, lookup) or [(EVERYTHING,)]:
        yield Need(action=action, resources=resources, context=context)
        if tags:
            yield Need(action="sts:TagSession", resources=resources, context=context)


def session_tags(parameters: Mapping[str, Any]) -> Mapping[str, str]:
    keys = {name: str(key) for name, key in parameters.items() if TAG_KEY.fullmatch(name)}
    return {key: str(parameters.get(name.removesuffix("Key") + "Value", "")) for name, key in keys.items()}


def of_assumption(parameters: Mapping[str, Any], tags: Mapping[str, str]) -> Mapping[str, str]:
    """Return the condition keys of an AssumeRole request."""
    reported = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    for name in ("ExternalId", "RoleSessionName"):
        if isinstance(parameters.get(name), str):
            reported[f"sts:{name}"] = parameters[name]
    return reported


def _resources(service: str, given: Mapping[str, Any], place: RequestPlace, lookup: Lookup) -> list[tuple[str, ...]]:
    if service == "logs":
        return _log_resources(given, place)
    if service == "ssm" and (isinstance(given.get("Target"), str) or isinstance(given.get("SessionId"), str)):
        return _session_resources(given, place)
    if service == "ssm":
        names = [given["Name"]] if isinstance(given.get("Name"), str) else _texts(given.get("Names"))
        names = names or _texts([given.get("Path")])
        return [(place.arn("ssm", f"parameter/{name.lstrip('/')}"),) for name in names]
    if service == "fsx" and isinstance(given.get("FileSystemId"), str):
        return [(place.arn("fsx", f"file-system/{given['FileSystemId']}"),)]
    if service == "ecr" and isinstance(given.get("repositoryName"), str):
        return [(place.arn("ecr", f"repository/{given['repositoryName']}"),)]
    for kind, key in LOOKED_UP.get(service, ()):
        if isinstance(given.get(key), str):
            found = lookup(kind, given[key])
            return [(found,)] if found else []
    return []


def _session_resources(given: Mapping[str, Any], place: RequestPlace) -> list[tuple[str, ...]]:
    """Cluster and document of StartSession; the session of the others."""
    if isinstance(given.get("SessionId"), str):
        return [(place.arn("ssm", f"session/{given['SessionId']}"),)]
    target = ClusterTarget.parse(given["Target"])
    document = str(given.get("DocumentName") or RUN_SHELL).rpartition("/")[2]
    owner = "" if document.startswith("AWS-") else place.account
    named = f"arn:aws:ssm:{place.region}:{owner}:document/{document}"
    return [(place.arn("sagemaker", f"cluster/{target.cluster_id}") if target is not None else EVERYTHING,), (named,)]


LOOKED_UP = {
    "sagemaker": (("cluster", "ClusterName"),),
    "secretsmanager": (("secret", "SecretId"),),
    "kms": (("key", "KeyId"),),
    "iam": (("role", "RoleName"),),
    "sts": (("named role", "RoleArn"),),
    "eks": (("eks cluster", "name"), ("eks cluster", "clusterName")),
}


def _log_resources(given: Mapping[str, Any], place: RequestPlace) -> list[tuple[str, ...]]:
    group = given.get("logGroupName") or str(given.get("logGroupIdentifier") or "").partition(":log-group:")[2]
    if not isinstance(group, str) or not group:
        return []
    plain = place.arn("logs", f"log-group:{group.removesuffix(':*')}")
    stream = given.get("logStreamName")
    name = stream if isinstance(stream, str) else ""
    return [(plain, f"{plain}:*", f"{plain}:log-stream:{name}")]


def _texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


# -- S3

OF_OBJECTS = {
    "GET": "GetObject",
    "HEAD": "GetObject",
    "PUT": "PutObject",
    "POST": "PutObject",
    "DELETE": "DeleteObject",
}
OF_BUCKETS = {"GET": "ListBucket", "HEAD": "ListBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
VERBS = {"GET": "Get", "HEAD": "Get", "PUT": "Put", "POST": "Put", "DELETE": "Delete"}
SUBRESOURCES = {
    "acl": "Acl",
    "cors": "CORS",
    "encryption": "EncryptionConfiguration",
    "legal-hold": "LegalHold",
    "lifecycle": "LifecycleConfiguration",
    "location": "Location",
    "logging": "Logging",
    "notification": "Notification",
    "object-lock": "ObjectLockConfiguration",
    "ownershipControls": "OwnershipControls",
    "policy": "Policy",
    "publicAccessBlock": "PublicAccessBlock",
    "replication": "ReplicationConfiguration",
    "retention": "Retention",
    "tagging": "Tagging",
    "versioning": "Versioning",
    "website": "Website",
}
PLAIN = frozenset(
    [
        "list-type",
        "prefix",
        "delimiter",
        "marker",
        "max-keys",
        "continuation-token",
        "start-after",
        "encoding-type",
        "fetch-owner",
        "versionId",
        "partNumber",
        "uploadId",
        "x-id",
        "key-marker",
        "version-id-marker",
        "upload-id-marker",
        "max-uploads",
        "max-parts",
        "part-number-marker",
        "uploads",
        "versions",
        "delete",
        "attributes",
        "restore",
        "select",
        "select-type",
        "awsaccesskeyid",
        "signature",
        "expires",
    ]
)
"""Parts of a query that ask for nothing more, or that are looked at below."""


def needs_of_s3(*, method: str, path: str, query: Mapping[str, str], copied_from: str, body: bytes) -> Iterator[Need]:
    """Return the needs of an S3 request; ``path`` is decoded, with the bucket first."""
    bucket, _, key = path.removeprefix("/").partition("/")
    if not bucket or path.startswith("/v20180820/"):  # S3 Control's, which moto finds there
        yield Need(action="s3:ListAllMyBuckets" if path == "/" and method == "GET" else "s3:UnknownOperation")
        return
    place = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
    context = {f"s3:{name}": query[name] for name in ("prefix", "delimiter", "max-keys") if name in query}
    for action, resource in _of_s3(method, bucket, key, query, body):
        yield Need(action=f"s3:{action}", resources=(resource or place,), context=context)
    if copied_from:
        source = unquote(copied_from.partition("?")[0]).lstrip("/")
        yield Need(action="s3:GetObject", resources=(f"arn:aws:s3:::{source}",))


def _of_s3(method: str, bucket: str, key: str, query: Mapping[str, str], body: bytes) -> Iterator[tuple[str, str]]:
    verb = VERBS.get(method, "Unknown")
    named = [name for name in query if name not in PLAIN and not name.lower().startswith(("x-amz-", "response-"))]
    named = [name for name in named if name.lower() not in PLAIN]
    for name in named:
        kind = "Bucket" if not key and name not in ("encryption", "lifecycle", "replication") else ""
        yield f"{verb}{'Object' if key else kind}{SUBRESOURCES.get(name, 'Unknown')}", ""
    if named and method in ("GET", "HEAD"):
        return
    if key:
        yield from _of_object(method, query)
    elif method == "POST" and "delete" in query:
        for each in _deleted(body):
            yield "DeleteObject", f"arn:aws:s3:::{bucket}/{each}"
    elif method == "GET" and "versions" in query:
        yield "ListBucketVersions", ""
    elif method == "GET" and "uploads" in query:
        yield "ListBucketMultipartUploads", ""
    elif not (named and method == "PUT"):
        yield OF_BUCKETS.get(method, "UnknownOperation"), ""


def _of_object(method: str, query: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "uploadId" in query and method in ("GET", "DELETE"):
        yield ("ListMultipartUploadParts" if method == "GET" else "AbortMultipartUpload"), ""
    elif method == "POST" and "restore" in query:
        yield "RestoreObject", ""
    elif method == "POST" and "select" in query:
        yield "GetObject", ""
    else:
        version = "Version" if "versionId" in query and method in ("GET", "HEAD", "DELETE") else ""
        yield OF_OBJECTS.get(method, "UnknownOperation") + version, ""


def _deleted(body: bytes) -> list[str]:
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 - expat bounds what entities grow to
    except ElementTree.ParseError:
        return [EVERYTHING]
    return [each.text or "" for each in root.iter() if each.tag.rpartition("}")[2] == "Key"] or [EVERYTHING]
