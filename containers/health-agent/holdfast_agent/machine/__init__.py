"""Load, memory and CPU time of the machine, for metrics: a detector that finds nothing and can be lost."""

from holdfast_agent.machine.detector import Machine

__all__ = ["Machine"]
