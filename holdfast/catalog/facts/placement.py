"""Regions, partitions, and availability of CloudFormation types and HyperPod instance types."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.catalog.facts.packages import folder_of, of_cfn_lint
from holdfast.catalog.facts.pages import page_fact
from holdfast.catalog.facts.schemas import listed_regions, types_in

REGION_NAME = r"[a-z]{2,4}(-[a-z]+)+-\d"
ZONE_NAME = rf"{REGION_NAME}([a-z]|-[a-z]{{3}}-\d[a-z]|-wl\d-[a-z]{{3}}-wlz-\d)"
"""Of Availability Zones, Local Zones and Wavelength Zones."""
ZONES_FILE = Path(__file__).with_name("zones.json")
HYPERPOD_TYPES = "schemas/extensions/aws_sagemaker_cluster/instancetype_enum.json"


@functools.cache
def regions() -> Mapping[str, str]:
    return {
        region: name for name, each in _partitions().items() for region in each["regions"] if "-global" not in region
    }


def partition_of(region: str) -> str | None:
    """Partition of a region; None for an unknown one."""
    return regions().get(region)


def dns_suffix(partition: str) -> str:
    return str(_partitions()[partition]["outputs"]["dnsSuffix"])


def is_type(name: str) -> bool:
    """Return True for a resource type of CloudFormation."""
    return any(name in types_in(region) for region in listed_regions())


def type_names() -> list[str]:
    return sorted(set().union(*(types_in(region) for region in listed_regions())))


def has_type(name: str, region: str) -> bool | None:
    """Return True if a region has a resource type; None if unknown."""
    listed = types_in(region)
    return name in listed if listed and is_type(name) else None


def regions_of(name: str) -> tuple[str, ...]:
    """Public regions with a resource type."""
    return tuple(each for each in listed_regions() if name in types_in(each) and not _is_secret(each))


def hyperpod_regions() -> tuple[str, ...]:
    return regions_of("AWS::SageMaker::Cluster")


@functools.cache
def hyperpod_types(region: str) -> frozenset[str]:
    """HyperPod's instance types in a region; empty if unknown."""
    listed = _types_by_region(HYPERPOD_TYPES).get(region)
    if listed is None:
        return frozenset()
    ec2 = _types_by_region("schemas/extensions/aws_ec2_instance/instancetype_enum.json")
    # A price that SageMaker has for a type says nothing where EC2 does not have it.
    lacking = frozenset().union(*ec2.values()) - ec2[region] if region in ec2 else frozenset()
    listed -= {name for name in listed if name[3:].startswith(("p", "trn", "inf")) and name[3:] in lacking}
    others = page_fact("regions_of_types_that_packages_lack")
    return listed | {name for name, there in others.items() if region in there}


def zone_ends(family: str) -> str:
    """Ends of the names or ids of a region's zones: abcd of us-west-2, 1234 of usw2-az; empty if unknown."""
    return _zones().get(family, "")


def _is_secret(region: str) -> bool:
    return (regions().get(region) or "aws-iso").startswith("aws-iso")


@functools.cache
def _partitions() -> Mapping[str, Any]:
    listed = json.loads((folder_of("botocore") / "data/partitions.json").read_text())["partitions"]
    return {each["id"]: each for each in listed}


@functools.cache
def _types_by_region(path: str) -> Mapping[str, frozenset[str]]:
    return {region: frozenset(each["enum"]) for region, each in of_cfn_lint(path).items() if isinstance(each, dict)}


@functools.cache
def _zones() -> Mapping[str, str]:
    return dict(json.loads(ZONES_FILE.read_text()))
