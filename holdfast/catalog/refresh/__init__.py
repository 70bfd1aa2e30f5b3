"""Generated data of packages, for developers. Loaded by two programs and by tests only."""

from holdfast.catalog.refresh.from_packages import (
    PAGE,
    page_text,
    policies_text,
    regions_text,
    versions_text,
    write_facts,
)
from holdfast.catalog.refresh.instance_types import botocore_instance_types, write_instance_types

__all__ = [
    "PAGE",
    "botocore_instance_types",
    "page_text",
    "policies_text",
    "regions_text",
    "versions_text",
    "write_facts",
    "write_instance_types",
]
