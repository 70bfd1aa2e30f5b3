"""Knowledge as data: what AWS offers, each figure with its source. Judging it is left to others."""

from holdfast.catalog._addresses import LARGEST_SUBNET, SMALLEST_SUBNET, addresses_needed, prefix_length_for
from holdfast.catalog._charts import Chart, charts
from holdfast.catalog._instance_types import InstanceType, Orchestrator, instance_types
from holdfast.catalog._kubernetes import (
    Addon,
    eks_addons,
    eks_image_account,
    health_monitoring_agent_regions,
    kubernetes_versions,
)

__all__ = [
    "LARGEST_SUBNET",
    "SMALLEST_SUBNET",
    "Addon",
    "Chart",
    "InstanceType",
    "Orchestrator",
    "addresses_needed",
    "charts",
    "eks_addons",
    "eks_image_account",
    "health_monitoring_agent_regions",
    "instance_types",
    "kubernetes_versions",
    "prefix_length_for",
]
