"""Evidence for ``holdfast why``, from Slurm, Kubernetes, nodes, launchers and events. Decides nothing."""

from holdfast.cli.collectors.collect import active_jobs, collect

__all__ = ["active_jobs", "collect"]
