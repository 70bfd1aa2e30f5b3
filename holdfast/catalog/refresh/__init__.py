"""
Writes the data that packages know, for developers. Only the two programs that run it and tests load this room; what
the data say is read in the rooms around it.
"""

from holdfast.catalog.refresh.from_packages import (
    page_text,
    policies_text,
    regions_text,
    versions_text,
    write_facts,
)
from holdfast.catalog.refresh.instance_types import botocore_instance_types, write_instance_types

__all__ = [
    "botocore_instance_types",
    "page_text",
    "policies_text",
    "regions_text",
    "versions_text",
    "write_facts",
    "write_instance_types",
]
