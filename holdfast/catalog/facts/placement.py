"""Regions, partitions, and availability of CloudFormation types and HyperPod instance types."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.catalog.facts.pages import page_fact

REGIONS_FILE = Path(__file__).with_name("regions.json")


@functools.cache
def regions() -> Mapping[str, str]:
    return {region: name for name, facts in _data()["partitions"].items() for region in facts["regions"]}


def partition_of(region: str) -> str | None:
    """Partition of a region; None for an unknown one."""
    return regions().get(region)


def dns_suffix(partition: str) -> str:
    return str(_data()["partitions"][partition]["suffix"])


def type_names() -> Mapping[str, Any]:
    names: Mapping[str, Any] = _data()["types"]
    return names


def has_type(name: str, region: str) -> bool | None:
    """Return True if a region has a resource type; None if unknown."""
    order, types = _order(), _data()["types"]
    if name not in types or region not in order:
        return None
    return bool(int(types[name], 16) >> order[region] & 1)


def regions_of(name: str) -> tuple[str, ...]:
    """Public regions with a resource type."""
    return tuple(each for each in _data()["order"] if has_type(name, each) and not _is_secret(each))


def hyperpod_regions() -> tuple[str, ...]:
    return regions_of("AWS::SageMaker::Cluster")


@functools.cache
def hyperpod_types(region: str) -> frozenset[str]:
    """HyperPod's instance types in a region; empty if unknown."""
    data = _data()
    if region not in data["instance_order"]:
        return frozenset()
    place = data["instance_order"].index(region)
    listed = {name for name, bits in data["instance_types"].items() if int(bits, 16) >> place & 1}
    others = page_fact("regions_of_types_that_packages_lack")
    return frozenset(listed | {name for name, there in others.items() if region in there})


def last_zone(region: str) -> str | None:
    """Last letter of a region's zones; None if unknown."""
    letters = _data()["zones"].get(region)
    return letters[-1] if letters else None


def _is_secret(region: str) -> bool:
    return (regions().get(region) or "aws-iso").startswith("aws-iso")


@functools.cache
def _order() -> Mapping[str, int]:
    return {region: index for index, region in enumerate(_data()["order"])}


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(REGIONS_FILE.read_text()))
