"""
Field types of AWS and Kubernetes: names, ids, ARNs, instance types.

Limits are the service's own, from botocore's API models unless a field states otherwise.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from holdfast.catalog import bounds, instance_types, kubernetes_versions
from holdfast.catalog.facts import REGION_NAME, ZONE_NAME, hyperpod_regions
from holdfast.config.models.base import KnownValues
from holdfast.config.refusals import Allowed, in_letters_of, refused
from holdfast_common import closest_word

SERVICE_NAME = r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"
_NAME, _TYPES, _ALARMS = bounds("name_length"), bounds("flexible_types"), bounds("rollback_alarms")
_SUBNETS, _GROUPS, _LABELS = bounds("subnets"), bounds("security_groups"), bounds("labels")
_TAG_KEY, _TAG_VALUE, _FURTHER_ZONES = bounds("tag_key_length"), bounds("tag_value_length"), bounds("further_zones")
NAME_IN_WORDS = f"{_NAME} letters, digits and hyphens, beginning and ending with a letter or digit"


def _instance_type(value: str) -> str:
    if value not in instance_types():
        raise refused()
    return value


def _closest_instance_type(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    name = (value if value.startswith("ml.") else f"ml.{value}").lower()
    family, _, size = name.rpartition(".")
    sizes = {each: _size(each) for each in instance_types() if each.startswith(f"{family}.")}
    if sizes and (number := _size(size)):
        return min(sizes, key=lambda each: abs(sizes[each] - number))
    return closest_word(name, instance_types())


def _size(name: str) -> int:
    found = re.search(r"(\d*)xlarge$", name)
    return int(found[1] or 1) if found else 0


def _own_tag(value: str) -> str:
    if value.lower().startswith("aws:"):
        raise refused()
    return value


_NAMED, _IN_LETTERS = Field(pattern=SERVICE_NAME, max_length=_NAME.most), in_letters_of(SERVICE_NAME)
ClusterName = Annotated[str, _NAMED, Allowed(NAME_IN_WORDS, "frontier", _IN_LETTERS)]
GroupName = Annotated[str, _NAMED, Allowed(NAME_IN_WORDS, "workers", _IN_LETTERS)]
Partition = Annotated[str, _NAMED, Allowed(NAME_IN_WORDS, "dev", _IN_LETTERS)]
DatasetName = Annotated[str, _NAMED, Allowed(NAME_IN_WORDS, "data", _IN_LETTERS, code="HF620")]
WeeklyTime = Annotated[
    str,
    Field(pattern=r"^[1-7]:([01]\d|2[0-3]):[0-5]\d$"),
    Allowed("day of the week from 1, Monday, to 7, with hour and minute in UTC, in quotes", '"7:03:00"'),
]
"""FSx API reference, WeeklyTime."""
Account = Annotated[
    str, Field(pattern=r"^\d{12}$"), Allowed("the 12 digits of an AWS account, in quotes", "123456789012")
]
Region = Annotated[
    str,
    Field(pattern=f"^{REGION_NAME}$"),
    KnownValues(names=hyperpod_regions),
    Allowed("the name of an AWS region", "us-west-2", lambda value: closest_word(str(value), hyperpod_regions())),
]
AvailabilityZone = Annotated[
    str,
    Field(pattern=f"^{ZONE_NAME}$"),
    Allowed(
        "the name of an availability zone: a region and a letter, or a Local or Wavelength Zone such as "
        "us-west-2-phx-2a",
        "us-west-2a",
    ),
]
AdditionalZones = Annotated[
    tuple[AvailabilityZone, ...],
    # Left out of a stack's metadata where there are none, so that existing templates stay as they are.
    Field(max_length=_FURTHER_ZONES.most, strict=False, exclude_if=lambda zones: not zones),
    Allowed(f"a list of at most {_FURTHER_ZONES.most} names of availability zones", ["us-west-2b"], code="HF248"),
]
GroupZone = Annotated[AvailabilityZone | None, Field(exclude_if=lambda zone: zone is None)]
AvailabilityZoneId = Annotated[
    str,
    Field(pattern=r"^[a-z]{2,5}\d(-[a-z]{2,5}\d)?-az\d{1,2}$"),
    Allowed("the id of an availability zone, which is the same in all accounts", "use1-az4"),
]
InstanceTypeName = Annotated[
    str,
    AfterValidator(_instance_type),
    KnownValues(names=instance_types, others=False),
    Allowed("an instance type that HyperPod offers", "ml.p5.48xlarge", _closest_instance_type, code="HF106"),
]
Repository = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]+([._/-][a-z0-9]+)*$", min_length=2, max_length=256),
    Allowed("the name of an ECR repository in this account and region", "holdfast-training"),
]
RepositoryNameOrArn = Annotated[
    str,
    Field(
        pattern=r"^(arn:aws[a-z-]*:ecr:[a-z0-9-]+:\d{12}:repository/)?[a-z0-9]+([._/-][a-z0-9]+)*$",
        min_length=2,
        max_length=2048,
    ),
    Allowed("the name of an ECR repository in this account and region, or the ARN of any", "team/trainer"),
]
RepositoryNamesOrArns = Annotated[
    tuple[RepositoryNameOrArn, ...],
    Field(max_length=50, strict=False),
    Allowed("a list of at most 50 names or ARNs of ECR repositories", []),
]
DigestSha256 = Annotated[
    str,
    Field(pattern=r"^sha256:[0-9a-f]{64}$"),
    Allowed("sha256: and 64 hexadecimal digits", "sha256:" + "0" * 64),
]
InstanceTypeNames = Annotated[
    tuple[InstanceTypeName, ...],
    Field(min_length=_TYPES.least, max_length=_TYPES.most, strict=False),
    Allowed(f"a list of {_TYPES} instance types, the preferred one first", [], code="HF109"),
]
VolumeKey = Annotated[
    str,
    Field(pattern=r"^[a-zA-Z0-9:/_-]+$", max_length=2048),
    Allowed(
        "the id, alias or ARN of a KMS key",
        "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    ),
]
KmsKey = Annotated[
    str,
    # KMS developer guide, "Key identifiers (KeyId)"
    Field(
        pattern=r"^(aws-managed|create|(mrk-)?[0-9a-f-]{32,36}|alias/[a-zA-Z0-9/_-]+"
        r"|arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key/[a-zA-Z0-9-]+|alias/[a-zA-Z0-9/_-]+))$"
    ),
    Allowed("aws-managed, create, or the id, alias or ARN of a KMS key", "create"),
]
KmsKeyArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+$"),
    Allowed("the ARN of a KMS key", "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
]
_BUCKET = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
"""Amazon S3 user guide, "General purpose bucket naming rules"."""
BucketName = Annotated[
    str,
    Field(pattern=_BUCKET),
    Allowed(
        "the name of an S3 bucket: 3 to 63 lower-case letters, digits, '.' and '-'",
        "team-datasets",
        lambda value: in_letters_of(_BUCKET)(str(value).removeprefix("s3://").strip("/")),
    ),
]
S3Uri = Annotated[
    str,
    Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()=+@ -]+)*/?$", max_length=1024),
    Allowed("s3://, a bucket, and a prefix in it or none", "s3://team-datasets/text"),
]
FileSystemId = Annotated[
    str,
    Field(pattern=r"^fs-[0-9a-f]{8,18}$"),
    Allowed("the id of an FSx file system", "fs-0123456789abcdef0"),
]
LustreMountName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_-]{1,8}$"),
    Allowed("the mount name of an FSx for Lustre file system: 1 to 8 letters and digits", "fsx4abcd"),
]
FileSystemDnsName = Annotated[
    str,
    Field(pattern=r"^fs-[0-9a-f]{8,18}(\.[a-z0-9-]+){3,}$", max_length=275),
    Allowed("the DNS name of an FSx file system", "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com"),
]
EksClusterNameOrArn = Annotated[
    str,
    Field(pattern=r"^(arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/)?[0-9A-Za-z][A-Za-z0-9_-]{0,99}$"),
    Allowed("the name or ARN of an EKS cluster", "platform"),
]
PermissionsBoundary = Annotated[
    str,
    Field(
        pattern=r"^(arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[A-Za-z0-9_+=,.@/-]+|[A-Za-z0-9_+=,.@-]{1,128})$",
        max_length=2048,
    ),
    Allowed("the name of an IAM policy of this account, or the ARN of any", "team-boundary"),
]
LifecycleFileName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$", max_length=bounds("script_name_length").most),
    Allowed("the name of a file below the prefix", "on_create.sh"),
]
RoleArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9_+=,.@/-]+$", max_length=2048),
    Allowed("the ARN of an IAM role", "arn:aws:iam::123456789012:role/Admin"),
]
RoleArns = Annotated[tuple[RoleArn, ...], Field(strict=False), Allowed("a list of ARNs of IAM roles", [])]
SecretArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[a-zA-Z0-9/_+=.@-]+$", max_length=2048),
    Allowed("the ARN of a secret", "arn:aws:secretsmanager:us-west-2:123456789012:secret:slurm-AbCdEf"),
]
TrainingPlanArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan/[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}$",
        max_length=2048,
    ),
    Allowed("the ARN of a training plan", "arn:aws:sagemaker:us-west-2:123456789012:training-plan/p5"),
]
ImageId = Annotated[
    str,
    Field(pattern=r"^(ami-([0-9a-f]{8}|[0-9a-f]{17})|default)$"),
    Allowed("the id of an AMI, or default", "ami-0123456789abcdef0"),
]
ImageReleaseVersion = Annotated[
    str,
    Field(pattern=r"^\d{1,4}\.\d{1,4}\.\d{1,4}$"),
    Allowed("a version MAJOR.MINOR.PATCH of the HyperPod AMI", "1.0.0"),
]
KubernetesVersion = Annotated[
    str,
    Field(pattern=r"^1\.\d{2}$"),
    KnownValues(names=kubernetes_versions),
    Allowed("a Kubernetes version MAJOR.MINOR in quotes", "1.34", code="HF302"),
]
VpcId = Annotated[
    str, Field(pattern=r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$"), Allowed("the id of a VPC", "vpc-0123456789abcdef0")
]
SubnetId = Annotated[
    str,
    Field(pattern=r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$"),
    Allowed("the id of a subnet", "subnet-0123456789abcdef0"),
]
SubnetIds = Annotated[
    tuple[SubnetId, ...],
    Field(max_length=_SUBNETS.most, strict=False),
    Allowed(f"a list of at most {_SUBNETS.most} ids of subnets", []),
]
AdditionalSubnetIds = Annotated[
    tuple[SubnetId, ...],
    Field(max_length=_SUBNETS.most - 1, strict=False),
    Allowed(f"a list of at most {_SUBNETS.most - 1} ids of subnets beside the first", []),
]
OneOrMoreSubnetIds = Annotated[
    tuple[SubnetId, ...],
    Field(min_length=_SUBNETS.least, max_length=_SUBNETS.most, strict=False),
    Allowed(f"a list of {_SUBNETS} ids of subnets", []),
]
SecurityGroupId = Annotated[
    str,
    Field(pattern=r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$"),
    Allowed("the id of a security group", "sg-0123456789abcdef0"),
]
AdditionalSecurityGroupIds = Annotated[
    tuple[SecurityGroupId, ...],
    Field(max_length=_GROUPS.most - 1, strict=False),
    Allowed(f"a list of at most {_GROUPS.most - 1} ids of security groups beside the first", []),
]
OneOrMoreSecurityGroupIds = Annotated[
    tuple[SecurityGroupId, ...],
    Field(min_length=_GROUPS.least, max_length=_GROUPS.most, strict=False),
    Allowed(f"a list of {_GROUPS} ids of security groups", []),
]
DeepHealthChecks = Annotated[
    # MultiNodeTrainingValidation is in the API alone: CloudFormation's schema refuses it before anything is made.
    tuple[Literal["InstanceStress", "InstanceConnectivity"], ...],
    Field(max_length=2, strict=False),
    Allowed("a list of InstanceStress, InstanceConnectivity", [], code="HF708"),
]
RouteTableId = Annotated[
    str,
    Field(pattern=r"^rtb-([0-9a-f]{8}|[0-9a-f]{17})$"),
    Allowed("the id of a route table", "rtb-0123456789abcdef0"),
]
LabelKey = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
        max_length=bounds("label_key_length").most,
    ),
    Allowed(
        "the key of a Kubernetes label: at most 63 letters, digits, '-', '_' and '.', after a prefix and '/'",
        "team",
        code="HF312",
    ),
]
LabelValue = Annotated[
    str,
    Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"),
    Allowed("the value of a Kubernetes label: at most 63 letters, digits, '-', '_' and '.'", "training", code="HF312"),
]
Labels = Annotated[
    dict[LabelKey, LabelValue],
    Field(max_length=_LABELS.most),
    Allowed(f"at most {_LABELS.most} labels as key: value", {"team": "a"}, code="HF312"),
]
_OF_TAGS = r"[\w .:/=+@-]"
"""Letters and digits of any language (SageMaker API reference, Tag)."""
TagKey = Annotated[
    str,
    Field(pattern=rf"^{_OF_TAGS}+$", max_length=_TAG_KEY.most),
    AfterValidator(_own_tag),
    Allowed(
        f"the key of a tag: {_TAG_KEY} letters, digits and _.:/=+-@, not beginning with aws:", "team", code="HF115"
    ),
]
TagValue = Annotated[
    str,
    Field(pattern=rf"^{_OF_TAGS}*$", max_length=_TAG_VALUE.most),
    Allowed(f"the value of a tag: at most {_TAG_VALUE.most} letters, digits and _.:/=+-@", "training", code="HF115"),
]
Tags = Annotated[
    dict[TagKey, TagValue], Field(max_length=40), Allowed("at most 40 tags as key: value", {"team": "a"}, code="HF115")
]
AlarmNames = Annotated[
    tuple[
        Annotated[
            str,
            Field(min_length=1, max_length=bounds("alarm_name_length").most),
            Allowed("the name of a CloudWatch alarm", "errors"),
        ],
        ...,
    ],
    Field(min_length=_ALARMS.least, max_length=_ALARMS.most, strict=False),
    Allowed(f"a list of {_ALARMS} names of CloudWatch alarms", [], code="HF712"),
]
ScheduleExpression = Annotated[
    str,
    Field(pattern=r"^cron\(.+\)$", max_length=256),
    Allowed("a schedule of six cron fields in UTC", "cron(0 3 ? * SUN *)", code="HF714"),
]
TeamName = Annotated[
    str,
    # Resource schema of AWS::SageMaker::ComputeQuota, TeamName
    Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"),
    Allowed("1 to 40 lower-case letters, digits and hyphens, beginning and ending with a letter or digit", "research"),
]
PriorityClassName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"),
    Allowed("1 to 40 lower-case letters, digits and hyphens, beginning and ending with a letter or digit", "training"),
]
