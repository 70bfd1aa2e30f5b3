"""
Observations of the controller's agent: nodes lost, replaced or rebooted, and findings of HyperPod's agents.

On AWS there is no other source: HyperPod writes no event log, and on Slurm its agent's findings are only in CloudWatch.
In a rehearsal the control plane writes these events, and the agent does not repeat them.
"""

from holdfast_agent.controller.observation import HmaRecord, Instance, Observation
from holdfast_agent.controller.poller import ClusterPoller
from holdfast_agent.controller.watch import ControllerWatch
from holdfast_agent.controller.watcher import Watcher

__all__ = ["ClusterPoller", "ControllerWatch", "HmaRecord", "Instance", "Observation", "Watcher"]
