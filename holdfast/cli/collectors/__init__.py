"""Evidence for ``holdfast why``, from Slurm, Kubernetes, nodes, launchers and events. Decides nothing."""

from holdfast.cli.collectors.changes import changes_of_drivers, changes_of_events, changes_of_jobs
from holdfast.cli.collectors.collect import active_jobs, collect
from holdfast.cli.collectors.kubernetes import by_reason, pending_pod
from holdfast.cli.collectors.output import failure_in, interval_s
from holdfast.cli.collectors.probe import probed
from holdfast.cli.collectors.slurm import parse_controller

__all__ = [
    "active_jobs",
    "by_reason",
    "changes_of_drivers",
    "changes_of_events",
    "changes_of_jobs",
    "collect",
    "failure_in",
    "interval_s",
    "parse_controller",
    "pending_pod",
    "probed",
]
