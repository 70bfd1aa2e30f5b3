"""HyperPod cluster, owned or imported: orchestrator, roles, properties."""

from holdfast_constructs.cluster.hyperpod import AutoScaling, HyperPodCluster, TieredStorage, check_groups
from holdfast_constructs.cluster.l1 import orchestrator_properties
from holdfast_constructs.cluster.orchestrators import AccountingDatabase, EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.cluster.reference import IHyperPodCluster
from holdfast_constructs.cluster.session_document import SessionDocument

__all__ = [
    "AccountingDatabase",
    "AutoScaling",
    "EksOrchestrator",
    "HyperPodCluster",
    "IHyperPodCluster",
    "SessionDocument",
    "SlurmOrchestrator",
    "TieredStorage",
    "check_groups",
    "orchestrator_properties",
]
