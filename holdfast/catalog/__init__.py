"""Knowledge as data: what AWS offers, each figure with its source. Judging it is left to others."""

from holdfast.catalog.addresses import LARGEST_SUBNET, SMALLEST_SUBNET, addresses_needed, prefix_length_for
from holdfast.catalog.helm import Chart, charts
from holdfast.catalog.instances import INSTANCE_TYPES_FILE, InstanceType, Orchestrator, instance_types
from holdfast.catalog.kubernetes import (
    KUBERNETES_FILE,
    Addon,
    eks_addons,
    eks_image_account,
    health_monitoring_agent_regions,
    kubernetes_versions,
    nvidia_device_plugin_mirror,
)
from holdfast.catalog.properties import ASSOCIATION, CLUSTER, FILE_SYSTEM, Property, property_in
from holdfast.catalog.quotas import (
    LIMITS_FILE,
    Bounds,
    LustreThroughput,
    OpenZfsThroughput,
    Steps,
    bounds,
    limits,
    steps,
)

__all__ = [
    "ASSOCIATION",
    "CLUSTER",
    "FILE_SYSTEM",
    "INSTANCE_TYPES_FILE",
    "KUBERNETES_FILE",
    "LARGEST_SUBNET",
    "LIMITS_FILE",
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
    "bounds",
    "charts",
    "eks_addons",
    "eks_image_account",
    "health_monitoring_agent_regions",
    "instance_types",
    "kubernetes_versions",
    "limits",
    "nvidia_device_plugin_mirror",
    "prefix_length_for",
    "property_in",
    "steps",
]
