"""
Lifecycle scripts, fetched and run, and the files that an instance has before they run. What follows from a failed
script is for `instances`.
"""

from holdfast.localcloud.hyperpod.lifecycle.node_files import (
    AWS_SETTINGS,
    EVENTS,
    LIFE_CYCLE_CONFIG,
    PROVISIONING_LOG,
    PROVISIONING_PARAMETERS,
    RESOURCE_CONFIG,
    client_environment,
    client_settings,
    hosts,
    instance_metadata,
    job_environment,
    life_cycle_config,
    provisioning_parameters,
    resource_config,
    task_prolog,
)
from holdfast.localcloud.hyperpod.lifecycle.scripts import (
    TAIL_BYTES,
    TIMEOUT_S,
    Bundles,
    LifecycleError,
    Script,
    Tail,
    failed_step,
    how_it_ended,
    last_lines,
    working_folder,
)

__all__ = [
    "AWS_SETTINGS",
    "EVENTS",
    "LIFE_CYCLE_CONFIG",
    "PROVISIONING_LOG",
    "PROVISIONING_PARAMETERS",
    "RESOURCE_CONFIG",
    "TAIL_BYTES",
    "TIMEOUT_S",
    "Bundles",
    "LifecycleError",
    "Script",
    "Tail",
    "client_environment",
    "client_settings",
    "failed_step",
    "hosts",
    "how_it_ended",
    "instance_metadata",
    "job_environment",
    "last_lines",
    "life_cycle_config",
    "provisioning_parameters",
    "resource_config",
    "task_prolog",
    "working_folder",
]
