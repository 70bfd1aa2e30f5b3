"""Sections of the environment file from AWS's answers."""

from holdfast.importing.sections.clusters import cluster
from holdfast.importing.sections.file_systems import storage
from holdfast.importing.sections.lifecycle import LEGACY_FILE, Scripts
from holdfast.importing.sections.networks import in_zones, named_network, network, new_network, zones_of_our_own
from holdfast.importing.sections.orchestrator import eks, existing_eks, slurm

__all__ = [
    "LEGACY_FILE",
    "Scripts",
    "cluster",
    "eks",
    "existing_eks",
    "in_zones",
    "named_network",
    "network",
    "new_network",
    "slurm",
    "storage",
    "zones_of_our_own",
]
