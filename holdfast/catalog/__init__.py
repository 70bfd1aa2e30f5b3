"""Knowledge as data: what AWS offers, each figure with its source. Judging it is left to others."""

from holdfast.catalog._addresses import LARGEST_SUBNET, SMALLEST_SUBNET, addresses_needed, prefix_length_for
from holdfast.catalog._instance_types import InstanceType, instance_types

__all__ = [
    "LARGEST_SUBNET",
    "SMALLEST_SUBNET",
    "InstanceType",
    "addresses_needed",
    "instance_types",
    "prefix_length_for",
]
