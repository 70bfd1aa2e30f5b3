"""Lifecycle scripts in S3, of this app or existing."""

from holdfast_constructs.lifecycle.bundle import LifecycleBundle
from holdfast_constructs.lifecycle.files import ACCOUNTING, MOUNTS, MOUNTS_OF, collect, content_hash
from holdfast_constructs.lifecycle.scripts import ILifecycleScripts

__all__ = ["ACCOUNTING", "MOUNTS", "MOUNTS_OF", "ILifecycleScripts", "LifecycleBundle", "collect", "content_hash"]
