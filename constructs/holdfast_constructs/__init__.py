"""
CDK constructs for HyperPod clusters with Slurm or EKS. They know no environment file: any CDK app can use them.

A construct's module is loaded when the construct is first asked for: an app pays for the AWS services that it uses.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast_constructs._alarms import AlarmThresholds, ClusterAlarms, WatchedFileSystem
    from holdfast_constructs._cluster import AutoScaling, HyperPodCluster, TieredStorage
    from holdfast_constructs._cluster_reference import IHyperPodCluster
    from holdfast_constructs._dashboard import ClusterDashboard
    from holdfast_constructs._data_bucket import DataBucket, IDataBucket
    from holdfast_constructs._eks import HyperPodEks
    from holdfast_constructs._eks_access import IHyperPodEks
    from holdfast_constructs._eks_addon import EksAddon, PodIdentity
    from holdfast_constructs._eks_observability import ContainerInsights, ObservabilityAddon
    from holdfast_constructs._eks_operators import InstanceQuota, PriorityClass, TaskGovernance, Team, TrainingOperator
    from holdfast_constructs._eks_storage import FsxCsiDriver, LustreVolume
    from holdfast_constructs._encryption_key import EncryptionKey
    from holdfast_constructs._event_log_group import EventLogGroup
    from holdfast_constructs._event_rules import ClusterEventRules
    from holdfast_constructs._grafana import GrafanaWorkspace
    from holdfast_constructs._group_options import (
        AutoPatch,
        BatchSize,
        Deployment,
        EbsVolume,
        OverrideVpc,
        ScheduledUpdate,
        Taint,
    )
    from holdfast_constructs._helm import HelmInstaller, HelmRelease
    from holdfast_constructs._images import ContainerImage, ImageRepository
    from holdfast_constructs._instance_group import InstanceGroup
    from holdfast_constructs._key_reference import key_by_name
    from holdfast_constructs._lifecycle_bundle import LifecycleBundle
    from holdfast_constructs._lifecycle_scripts import ILifecycleScripts
    from holdfast_constructs._lustre import DataRepository, ILustreFileSystem, LustreFileSystem
    from holdfast_constructs._metric_filters import ClusterMetrics
    from holdfast_constructs._mlflow import MlflowApp
    from holdfast_constructs._mounts import LustreMount, OpenZfsMount
    from holdfast_constructs._network import HyperPodNetwork, IHyperPodNetwork
    from holdfast_constructs._observability import HyperPodObservability
    from holdfast_constructs._observability_logs import NodeLogGroup, log_group
    from holdfast_constructs._observability_topic import AlertTopic
    from holdfast_constructs._open_zfs import IOpenZfsFileSystem, OpenZfsFileSystem
    from holdfast_constructs._orchestrator import AccountingDatabase, EksOrchestrator, SlurmOrchestrator
    from holdfast_constructs._prometheus import PrometheusWorkspace
    from holdfast_constructs._restricted_group import RestrictedEnvironment, RestrictedInstanceGroup, RestrictedLustre
    from holdfast_constructs._rules_plugin import register_rules
    from holdfast_constructs._slurm_accounting import SlurmAccountingDatabase
    from holdfast_constructs._tensorboard import TensorBoardLogs

_MODULES = {
    "AccountingDatabase": "_orchestrator",
    "AlarmThresholds": "_alarms",
    "AlertTopic": "_observability_topic",
    "AutoPatch": "_group_options",
    "AutoScaling": "_cluster",
    "BatchSize": "_group_options",
    "ClusterAlarms": "_alarms",
    "ClusterDashboard": "_dashboard",
    "ClusterEventRules": "_event_rules",
    "ClusterMetrics": "_metric_filters",
    "ContainerImage": "_images",
    "ContainerInsights": "_eks_observability",
    "DataBucket": "_data_bucket",
    "DataRepository": "_lustre",
    "Deployment": "_group_options",
    "EbsVolume": "_group_options",
    "EksAddon": "_eks_addon",
    "EksOrchestrator": "_orchestrator",
    "EncryptionKey": "_encryption_key",
    "EventLogGroup": "_event_log_group",
    "FsxCsiDriver": "_eks_storage",
    "GrafanaWorkspace": "_grafana",
    "HelmInstaller": "_helm",
    "HelmRelease": "_helm",
    "HyperPodCluster": "_cluster",
    "HyperPodEks": "_eks",
    "HyperPodNetwork": "_network",
    "HyperPodObservability": "_observability",
    "IDataBucket": "_data_bucket",
    "IHyperPodCluster": "_cluster_reference",
    "IHyperPodEks": "_eks_access",
    "IHyperPodNetwork": "_network",
    "ILifecycleScripts": "_lifecycle_scripts",
    "ILustreFileSystem": "_lustre",
    "IOpenZfsFileSystem": "_open_zfs",
    "ImageRepository": "_images",
    "InstanceGroup": "_instance_group",
    "InstanceQuota": "_eks_operators",
    "LifecycleBundle": "_lifecycle_bundle",
    "LustreFileSystem": "_lustre",
    "LustreMount": "_mounts",
    "LustreVolume": "_eks_storage",
    "MlflowApp": "_mlflow",
    "NodeLogGroup": "_observability_logs",
    "ObservabilityAddon": "_eks_observability",
    "OpenZfsFileSystem": "_open_zfs",
    "OpenZfsMount": "_mounts",
    "OverrideVpc": "_group_options",
    "PodIdentity": "_eks_addon",
    "PriorityClass": "_eks_operators",
    "PrometheusWorkspace": "_prometheus",
    "RestrictedEnvironment": "_restricted_group",
    "RestrictedInstanceGroup": "_restricted_group",
    "RestrictedLustre": "_restricted_group",
    "ScheduledUpdate": "_group_options",
    "SlurmAccountingDatabase": "_slurm_accounting",
    "SlurmOrchestrator": "_orchestrator",
    "Taint": "_group_options",
    "TaskGovernance": "_eks_operators",
    "Team": "_eks_operators",
    "TensorBoardLogs": "_tensorboard",
    "TieredStorage": "_cluster",
    "TrainingOperator": "_eks_operators",
    "WatchedFileSystem": "_alarms",
    "key_by_name": "_key_reference",
    "log_group": "_observability_logs",
    "register_rules": "_rules_plugin",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULES)


__all__ = [
    "AccountingDatabase",
    "AlarmThresholds",
    "AlertTopic",
    "AutoPatch",
    "AutoScaling",
    "BatchSize",
    "ClusterAlarms",
    "ClusterDashboard",
    "ClusterEventRules",
    "ClusterMetrics",
    "ContainerImage",
    "ContainerInsights",
    "DataBucket",
    "DataRepository",
    "Deployment",
    "EbsVolume",
    "EksAddon",
    "EksOrchestrator",
    "EncryptionKey",
    "EventLogGroup",
    "FsxCsiDriver",
    "GrafanaWorkspace",
    "HelmInstaller",
    "HelmRelease",
    "HyperPodCluster",
    "HyperPodEks",
    "HyperPodNetwork",
    "HyperPodObservability",
    "IDataBucket",
    "IHyperPodCluster",
    "IHyperPodEks",
    "IHyperPodNetwork",
    "ILifecycleScripts",
    "ILustreFileSystem",
    "IOpenZfsFileSystem",
    "ImageRepository",
    "InstanceGroup",
    "InstanceQuota",
    "LifecycleBundle",
    "LustreFileSystem",
    "LustreMount",
    "LustreVolume",
    "MlflowApp",
    "NodeLogGroup",
    "ObservabilityAddon",
    "OpenZfsFileSystem",
    "OpenZfsMount",
    "OverrideVpc",
    "PodIdentity",
    "PriorityClass",
    "PrometheusWorkspace",
    "RestrictedEnvironment",
    "RestrictedInstanceGroup",
    "RestrictedLustre",
    "ScheduledUpdate",
    "SlurmAccountingDatabase",
    "SlurmOrchestrator",
    "Taint",
    "TaskGovernance",
    "Team",
    "TensorBoardLogs",
    "TieredStorage",
    "TrainingOperator",
    "WatchedFileSystem",
    "key_by_name",
    "log_group",
    "register_rules",
]
