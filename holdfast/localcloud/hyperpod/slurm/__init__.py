"""Slurm of each cluster: configuration, daemons of nodes, accounting, scheduler. `control` decides when."""

from holdfast.localcloud.hyperpod.slurm.clusters import SlurmClusters
from holdfast.localcloud.hyperpod.slurm.configuration import (
    DEFAULT_PARTITION,
    PLUGSTACK_CONF,
    SLURM_CONF,
    MachineSize,
    accounting_conf,
    gres_conf,
    merged,
    node_names,
    owned_lines,
    slurm_conf,
)
from holdfast.localcloud.hyperpod.slurm.daemons import (
    COMMAND_TIMEOUT_S,
    FORM_TIMEOUT_S,
    SlurmError,
    boot,
    is_enabled,
    last_words,
    revive_compute,
    write_configuration,
)
from holdfast.localcloud.hyperpod.slurm.munge import munge_key
from holdfast.localcloud.hyperpod.slurm.scheduler import Slurm, mark_of
from holdfast.localcloud.hyperpod.slurm.topology import topology_conf, topology_plugin

__all__ = [
    "COMMAND_TIMEOUT_S",
    "DEFAULT_PARTITION",
    "FORM_TIMEOUT_S",
    "PLUGSTACK_CONF",
    "SLURM_CONF",
    "MachineSize",
    "Slurm",
    "SlurmClusters",
    "SlurmError",
    "accounting_conf",
    "boot",
    "gres_conf",
    "is_enabled",
    "last_words",
    "mark_of",
    "merged",
    "munge_key",
    "node_names",
    "owned_lines",
    "revive_compute",
    "slurm_conf",
    "topology_conf",
    "topology_plugin",
    "write_configuration",
]
