"""Generated data of packages, for developers. Loaded by two programs and by tests only."""

from holdfast.catalog.refresh.from_packages import (
    page_text,
    policies_text,
    write_facts,
    zones_text,
)
from holdfast.catalog.refresh.instance_types import botocore_instance_types, write_instance_types

__all__ = [
    "botocore_instance_types",
    "page_text",
    "policies_text",
    "write_facts",
    "write_instance_types",
    "zones_text",
]
