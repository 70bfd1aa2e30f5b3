"""Child processes with deadlines, which are never waited for: one may become unkillable."""

from holdfast_agent.children.child import Answer, Child, Phase
from holdfast_agent.children.program import Ended, Program
from holdfast_agent.children.waiting import Patience, started_at

__all__ = ["Answer", "Child", "Ended", "Patience", "Phase", "Program", "started_at"]
