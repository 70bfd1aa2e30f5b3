"""Requests that no SDK would send, from a seed: operations of many services with what does not belong into them."""

import http.client
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import botocore.loaders
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.model import OperationModel, ServiceModel, Shape

from holdfast.localcloud.home import Keys

SERVICES = (
    *("amp", "cloudformation", "cloudtrail", "cloudwatch", "ec2", "eks", "events", "fsx", "grafana", "logs"),
    *("sagemaker", "s3", "iam", "sts", "kms", "ssm", "sns", "sqs", "ecr", "rds", "secretsmanager", "lambda"),
    *("dynamodb", "autoscaling", "elbv2", "route53", "acm", "stepfunctions", "efs", "batch", "kinesis", "backup"),
    *("resourcegroupstaggingapi", "budgets", "config", "codebuild", "firehose", "servicediscovery", "athena", "glue"),
)
NASTY: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 1e400, 0.5, "", " ", "x", "None", "*", "../../etc/passwd", "\x00", "\ud7ff", "é" * 300),
    *("arn:aws:iam::1:role/x", "arn:", "a:b:c:d:e:f", "i-0", "{", "[]", "%s%n", "${x}", "x" * 5000, "2026-13-45"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": {"b": []}}, [1, "a"], {"Key": None}),
)
BODIES = (
    *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe\x00", b"<", b"<a>", b"<a/>", b"{}" * 10, b"NaN", b"a=b&a=c"),
    *(
        b'{"a":' * 3000,
        b"[" * 3000,
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"<a>" * 3000,
        b"Action=",
        b"&&=&",
    ),
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><Tagging>&b;</Tagging>',
)
CONTENT_TYPES = ("", "text/plain", "application/json", "multipart/form-data", "x" * 500)
TARGETS = ("", ".", "x", "a.b.c", "DynamoDB_1.X")
PATHS = ("/%", "/%zz", "/%00", "//", "/..%2f..", "/" + "a/" * 300, "/?Action", "/?Action=%ff", "/?=&=")
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "X")
_loader = botocore.loaders.create_loader()


@dataclass(frozen=True, kw_only=True)
class Malformed:
    """One request."""

    service: str
    """As signatures name it."""
    method: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.service} {self.method} {self.path[:120]} {self.headers} {self.body[:200]!r}"


def malformed(seed: int, count: int, *, services: Sequence[str] = SERVICES) -> Iterator[Malformed]:
    """The same ``count`` requests for the same seed, the services taking turns."""
    chance = random.Random(seed)
    models = [ServiceModel(_loader.load_service_model(name, "service-2"), name) for name in services]
    for number in range(count):
        model = models[number % len(models)]
        operation = model.operation_model(chance.choice(model.operation_names))
        yield _request(chance, model, operation)


def _request(chance: random.Random, model: ServiceModel, operation: OperationModel) -> Malformed:
    made = _shaped(chance, model, operation)
    spoil = chance.random()
    headers = dict(made.headers)
    if spoil < 0.15:
        return replace(made, body=chance.choice(BODIES))
    if spoil < 0.2:
        return replace(made, headers={**headers, "Content-Type": chance.choice(CONTENT_TYPES)})
    if spoil < 0.25:
        target = chance.choice([*TARGETS, f"{model.service_name}.Nothing"])
        return replace(made, headers={**headers, "X-Amz-Target": target})
    if spoil < 0.3:
        return replace(made, path=chance.choice(PATHS))
    if spoil < 0.33:
        return replace(made, method=chance.choice(METHODS))
    return made


def _shaped(chance: random.Random, model: ServiceModel, operation: OperationModel) -> Malformed:
    """As the protocol wants it, with members that may be anything."""
    shape = operation.input_shape
    given = _structure(chance, shape, 0) if shape is not None else {}
    scope, protocol = model.signing_name, model.metadata["protocol"]
    if protocol in ("query", "ec2"):
        fields = {"Action": operation.name, "Version": model.api_version, **dict(_flat(given))}
        body = urlencode(fields, errors="replace").encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Malformed(service=scope, method="POST", path="/", body=body, headers=headers)
    body = json.dumps(given, default=str).encode()
    if protocol == "json":
        version = model.metadata.get("jsonVersion", "1.1")
        target = f"{model.metadata['targetPrefix']}.{operation.name}"
        headers = {"Content-Type": f"application/x-amz-json-{version}", "X-Amz-Target": target}
        return Malformed(service=scope, method="POST", path="/", body=body, headers=headers)
    http = operation.http
    path = http.get("requestUri", "/")
    for name in [part.partition("}")[0] for part in path.split("{")[1:]]:
        label = name.removesuffix("+")
        text = quote(str(given.get(label, chance.choice(["x", "a b", "..", "é", "arn:aws:x:::y"]))), errors="replace")
        path = path.replace("{" + name + "}", (text or "x")[:1000])
    if protocol == "rest-xml":
        body = chance.choice([b"", b"<x/>", f"<{operation.name}><a>1</a></{operation.name}>".encode(), body])
    return Malformed(service=scope, method=http["method"], path=path, body=body, headers={})


def _structure(chance: random.Random, shape: Any, depth: int) -> dict[str, Any]:
    return {
        name: _value(chance, member, depth)
        for name, member in shape.members.items()
        if chance.random() < (0.8 if name in shape.required_members else 0.3)
    }


def _value(chance: random.Random, shape: Shape, depth: int) -> Any:
    if chance.random() < 0.25 or depth > 4:
        return chance.choice(NASTY)
    match shape.type_name:
        case "structure":
            return _structure(chance, shape, depth + 1)
        case "list":
            return [_value(chance, shape.member, depth + 1) for _ in range(chance.randrange(3))]
        case "map":
            return {chance.choice(["a", "", "Name", "é"]): _value(chance, shape.value, depth + 1) for _ in range(2)}
        case "integer" | "long":
            return chance.choice([0, 1, -1, 10, 2**31])
        case "boolean":
            return chance.random() < 0.5
        case "string":
            return chance.choice([*shape.metadata.get("enum", [])[:5], "x", "name", "arn:aws:iam::123456789012:role/x"])
    return chance.choice(NASTY)


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value, 1):
            yield from _flat(each, f"{prefix}.member.{index}")
    else:
        yield prefix, str(value)


def send(request: Malformed, *, port: int, keys: Keys, region: str = "us-west-2") -> tuple[int, str]:
    """Status and body of a request that is signed as it should be."""
    url = f"http://localhost:{port}{request.path}"
    made = AWSRequest(method=request.method, url=url, data=request.body, headers={"Host": f"localhost:{port}"})
    signer = S3SigV4Auth if request.service == "s3" else SigV4Auth
    signer(Credentials(keys.access_key_id, keys.secret_access_key), request.service, region).add_auth(made)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        headers = {**dict(made.headers.items()), **request.headers}
        connection.request(request.method, request.path, body=request.body or None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()
