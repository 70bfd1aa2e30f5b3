"""
The environment file: the only place where a cluster is described.

``load`` gives a frozen ``Environment`` or an ``EnvironmentFileError`` with every problem and its line.
"""

from holdfast.config._load import load
from holdfast.config._models import (
    Cluster,
    Dataset,
    Environment,
    GroupSlurm,
    Images,
    InstanceGroup,
    Lifecycle,
    Lustre,
    Network,
    Slurm,
    StandIns,
    Storage,
    TrainingImage,
    User,
)
from holdfast.config._problems import EnvironmentFileError, Problem

__all__ = [
    "Cluster",
    "Dataset",
    "Environment",
    "EnvironmentFileError",
    "GroupSlurm",
    "Images",
    "InstanceGroup",
    "Lifecycle",
    "Lustre",
    "Network",
    "Problem",
    "Slurm",
    "StandIns",
    "Storage",
    "TrainingImage",
    "User",
    "load",
]
