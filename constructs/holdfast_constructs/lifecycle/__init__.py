"""
The scripts that run on new nodes, in S3, made here or there already. Which file a group runs is left to cluster.
"""

from holdfast_constructs.lifecycle.bundle import LifecycleBundle
from holdfast_constructs.lifecycle.files import ACCOUNTING, MOUNTS, MOUNTS_OF, collect, content_hash
from holdfast_constructs.lifecycle.scripts import ILifecycleScripts

__all__ = ["ACCOUNTING", "MOUNTS", "MOUNTS_OF", "ILifecycleScripts", "LifecycleBundle", "collect", "content_hash"]
