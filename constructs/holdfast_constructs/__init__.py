"""CDK constructs for HyperPod clusters with Slurm. They know no environment file, so any CDK app can use them."""

from holdfast_constructs._cluster import HyperPodCluster, IHyperPodCluster, LustreMount
from holdfast_constructs._data_bucket import DataBucket
from holdfast_constructs._event_log_group import EventLogGroup
from holdfast_constructs._instance_group import InstanceGroup
from holdfast_constructs._lifecycle_bundle import LifecycleBundle
from holdfast_constructs._lustre import DataRepository, LustreFileSystem
from holdfast_constructs._network import HyperPodNetwork

__all__ = [
    "DataBucket",
    "DataRepository",
    "EventLogGroup",
    "HyperPodCluster",
    "HyperPodNetwork",
    "IHyperPodCluster",
    "InstanceGroup",
    "LifecycleBundle",
    "LustreFileSystem",
    "LustreMount",
]
