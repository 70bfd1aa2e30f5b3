"""
Changing facts about AWS, each with source and date.

What the rules' own dependencies know is read there. What moto knows (``zones.json``, ``policies.json``) is written by
``python -m holdfast.catalog.refresh``. What only AWS's pages say is in ``pages.yaml``. docs/reference/facts.md says how
old they are.
"""

from holdfast.catalog.facts.caches import forget
from holdfast.catalog.facts.pages import kubernetes_support, page_fact, page_facts
from holdfast.catalog.facts.placement import (
    HYPERPOD_TYPES,
    REGION_NAME,
    ZONE_NAME,
    ZONES_FILE,
    dns_suffix,
    has_type,
    hyperpod_regions,
    hyperpod_types,
    partition_of,
    regions,
    regions_of,
    type_names,
    zone_ends,
)
from holdfast.catalog.facts.policies import (
    ASKED,
    EKS_ACTIONS,
    NODE_ACTIONS,
    POLICIES_FILE,
    VPC_ACTIONS,
    managed_policies,
)
from holdfast.catalog.facts.schemas import NEWER_TYPES, Schema, schema_of
from holdfast.catalog.facts.versions import (
    LAMBDA_RUNTIMES,
    facts_date,
    lambda_runtimes,
)

__all__ = [
    "ASKED",
    "EKS_ACTIONS",
    "HYPERPOD_TYPES",
    "LAMBDA_RUNTIMES",
    "NEWER_TYPES",
    "NODE_ACTIONS",
    "POLICIES_FILE",
    "REGION_NAME",
    "VPC_ACTIONS",
    "ZONES_FILE",
    "ZONE_NAME",
    "Schema",
    "dns_suffix",
    "facts_date",
    "forget",
    "has_type",
    "hyperpod_regions",
    "hyperpod_types",
    "kubernetes_support",
    "lambda_runtimes",
    "managed_policies",
    "page_fact",
    "page_facts",
    "partition_of",
    "regions",
    "regions_of",
    "schema_of",
    "type_names",
    "zone_ends",
]
