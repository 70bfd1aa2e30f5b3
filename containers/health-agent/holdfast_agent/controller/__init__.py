"""
What only the controller's agent sees: nodes that are lost, replaced or rebooted, and what HyperPod's agents found.

On AWS nobody else tells: HyperPod writes no event of ours, and on Slurm its own agent's findings reach nobody. In a
rehearsal the control plane tells, and nothing is told twice.
"""

from holdfast_agent.controller.looking import Looker
from holdfast_agent.controller.observation import HmaRecord, Instance, Observation
from holdfast_agent.controller.watch import ControllerWatch
from holdfast_agent.controller.watcher import Watcher

__all__ = ["ControllerWatch", "HmaRecord", "Instance", "Looker", "Observation", "Watcher"]
