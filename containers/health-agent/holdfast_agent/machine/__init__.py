"""Load, memory and CPU time of the machine, for metrics."""

from holdfast_agent.machine.detector import Machine

__all__ = ["Machine"]
