"""0xx: forms of names, ARNs and addresses, also of those that functions put together."""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.catalog import CLUSTER, EKS_CLUSTER
from holdfast.catalog.facts import REGION_NAME, ZONE_NAME
from holdfast.validation.cloudformation import Node, Reference, Text
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, text_of
from holdfast.validation.rules.network import DUMMY_ZONES
from holdfast.validation.rules.templates.references import RETURN_VALUES, typed_leaves


@dataclass(frozen=True, kw_only=True)
class _Form:
    pattern: str
    what: str


_SCRIPT = _Form(pattern=r"(?!/)(?!.*://).+", what="the name of a file below SourceS3Uri")
_DNS_NAME = _Form(
    pattern=rf"fs-[0-9a-f]+\.fsx\.{REGION_NAME}\.(amazonaws\.(com(\.cn)?|eu)|([a-z0-9-]+\.)+(gov|uk))",
    what="the DNS name of a file system, fs-ID.fsx.REGION.amazonaws.com",
)
_BUCKET = r"[a-z0-9][a-z0-9.-]+[a-z0-9]"
_KEY = _Form(
    pattern=r"[0-9a-f-]{36}|mrk-[0-9a-f]{32}|alias/.+|arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)/.+",
    what="the id, the alias or the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID",
)
_FORMS: Mapping[tuple[str, str], _Form] = {
    (CLUSTER, "Orchestrator.Eks.ClusterArn"): _Form(
        pattern=r"arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/[0-9A-Za-z][\w-]{0,99}",
        what="the ARN of an EKS cluster, arn:aws:eks:REGION:ACCOUNT:cluster/NAME",
    ),
    (CLUSTER, "ExecutionRole"): _Form(
        pattern=r"arn:aws[a-z-]*:iam::\d{12}:role/(?!aws-service-role/).+",
        what="the ARN of a role that SageMaker can assume",
    ),
    (CLUSTER, "LifeCycleConfig.SourceS3Uri"): _Form(
        pattern=rf"(s3|https)://{_BUCKET}(/.*)?", what="s3://BUCKET/PREFIX"
    ),
    (CLUSTER, "LifeCycleConfig.OnCreate"): _SCRIPT,
    (CLUSTER, "LifeCycleConfig.OnInitComplete"): _SCRIPT,
    (CLUSTER, "FsxLustreConfig.DnsName"): _DNS_NAME,
    (CLUSTER, "FsxOpenZfsConfig.DnsName"): _DNS_NAME,
    (CLUSTER, "EbsVolumeConfig.VolumeKmsKeyId"): _KEY,
    ("AWS::FSx::FileSystem", "KmsKeyId"): _KEY,
    ("AWS::FSx::DataRepositoryAssociation", "DataRepositoryPath"): _Form(
        pattern=rf"s3://{_BUCKET}(/.*)?|nfs://.+", what="s3://BUCKET/PREFIX"
    ),
    (EKS_CLUSTER, "EncryptionConfig.Provider.KeyArn"): _Form(
        pattern=r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/.+", what="the ARN of a key"
    ),
    ("AWS::EKS::AccessEntry", "PrincipalArn"): _Form(
        pattern=r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+", what="the ARN of a role or user, no session"
    ),
    ("AWS::EC2::Subnet", "AvailabilityZone"): _Form(
        pattern="|".join((ZONE_NAME, *DUMMY_ZONES)),
        what="the name of a zone, such as us-west-2a",
    ),
}
"""By type and end of the property's path, where the registry has no pattern or a wider one."""
_EXAMPLES = (
    "arn:aws:iam::123456789012:role/a",
    "arn:aws:iam::123456789012:user/a",
    "arn:aws:eks:us-east-1:123456789012:cluster/a",
    "arn:aws:kms:us-east-1:123456789012:key/a",
    "arn:aws:sagemaker:us-east-1:123456789012:cluster/abcdefghijkl",
    "arn:aws:sagemaker:us-east-1:123456789012:training-plan/a",
    "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
    "s3://bucket/a",
    "on_create.sh",
    "us-east-1a",
)
"""Values whose parts may stand in a gap."""


@rule("HF058", title="Names, ARNs and addresses have the form that the property takes", each=App, source=RETURN_VALUES)
def forms(app: App, _: Deployment) -> Iterator[Broken]:
    """
    What Fn::Sub and Fn::Join put together is judged as far as it is known: an ARN of another service, without its
    region or with another separator names nothing, whatever the account. CloudFormation passes it on, and the service
    refuses it.
    """
    for resource in app.all():
        own = {end: form for (kind, end), form in _FORMS.items() if kind == resource.type}
        for part, node in typed_leaves(app, resource):
            form = next((own[end] for end in own if _keys(node.path).endswith(f".{end}")), None)
            pattern = f"^({form.pattern})$" if form else part.get("pattern") if _is_made(node) else None
            if isinstance(pattern, str) and isinstance(node.example, str | Text) and not _fits(node.example, pattern):
                yield refused(
                    node.path,
                    show(text_of(node.example)),
                    allowed=form.what if form else f"what matches {pattern}",
                    fix="correct the value, or what it is put together from",
                )


def _keys(path: str) -> str:
    return ".".join(each for each in path.split(".") if not each.isdigit())


def _is_made(node: Node) -> bool:
    """True for a value of a function; cfn-lint judges what is written as it is."""
    return isinstance(node.written, Mapping)


def _fits(value: str | Text, pattern: str) -> bool:
    """Return True if a value can have a form with something in its gaps, or if the form cannot be read."""
    try:
        fits = re.compile(pattern).search
    except re.error:
        return True
    if isinstance(value, str):
        return "{{resolve:" in value or fits(value) is not None
    if not any(map(fits, _EXAMPLES)):
        return True
    gaps = [part for part in value.parts if not isinstance(part, str)]
    kind = gaps[0].attribute if len(gaps) == 1 and isinstance(gaps[0], Reference) else ""
    parts = _ARNS if kind.endswith("Arn") else _names() if kind == "Ref" else _parts()
    return any(fits(f"{value.start}{each}{value.end}") for each in parts)


_ARNS = tuple(each for each in _EXAMPLES if each.startswith("arn:"))


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(each for each in _parts() if not re.search("[/:]", each))


@functools.cache
def _parts() -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(text[a:b] for text in _EXAMPLES for a, b in itertools.combinations(range(len(text) + 1), 2))
    )
