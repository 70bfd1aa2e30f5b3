"""
What is done to instances: prepared, replaced, rebooted, removed, and the files that name all of a cluster. When is
for `control`.
"""

from holdfast.localcloud.hyperpod.instances.ami import shared_home
from holdfast.localcloud.hyperpod.instances.members import Members
from holdfast.localcloud.hyperpod.instances.procedures import TRAINING_ENVIRONMENT, Procedure

__all__ = ["TRAINING_ENVIRONMENT", "Members", "Procedure", "shared_home"]
