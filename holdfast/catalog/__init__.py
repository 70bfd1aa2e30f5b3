"""Knowledge as data: what AWS offers, each figure with its source. Judging it is left to others."""

from holdfast.catalog.__main__ import botocore_instance_types
from holdfast.catalog.addresses import LARGEST_SUBNET, SMALLEST_SUBNET, addresses_needed, prefix_length_for
from holdfast.catalog.helm import Chart, charts
from holdfast.catalog.instances import INSTANCE_TYPES, InstanceType, Orchestrator, instance_types
from holdfast.catalog.kubernetes import (
    KUBERNETES,
    Addon,
    eks_addons,
    eks_image_account,
    health_monitoring_agent_regions,
    kubernetes_versions,
    nvidia_device_plugin_mirror,
)
from holdfast.catalog.properties import (
    ASSOCIATION,
    AUTO_PATCH,
    BATCH_SIZE,
    CLUSTER,
    FILE_SYSTEM,
    GROUP,
    RESTRICTED_GROUP,
    RESTRICTED_LUSTRE,
    SCHEDULED_UPDATE,
    Property,
    property_in,
)
from holdfast.catalog.quotas import LIMITS, Bounds, LustreThroughput, OpenZfsThroughput, Steps, bounds, limits, steps
from holdfast.catalog.refresh import PAGE, page_text, policies_text, regions_text, versions_text

__all__ = [
    "ASSOCIATION",
    "AUTO_PATCH",
    "BATCH_SIZE",
    "CLUSTER",
    "FILE_SYSTEM",
    "GROUP",
    "INSTANCE_TYPES",
    "KUBERNETES",
    "LARGEST_SUBNET",
    "LIMITS",
    "PAGE",
    "RESTRICTED_GROUP",
    "RESTRICTED_LUSTRE",
    "SCHEDULED_UPDATE",
    "SMALLEST_SUBNET",
    "Addon",
    "Bounds",
    "Chart",
    "InstanceType",
    "LustreThroughput",
    "OpenZfsThroughput",
    "Orchestrator",
    "Property",
    "Steps",
    "addresses_needed",
    "botocore_instance_types",
    "bounds",
    "charts",
    "eks_addons",
    "eks_image_account",
    "health_monitoring_agent_regions",
    "instance_types",
    "kubernetes_versions",
    "limits",
    "nvidia_device_plugin_mirror",
    "page_text",
    "policies_text",
    "prefix_length_for",
    "property_in",
    "regions_text",
    "steps",
    "versions_text",
]
