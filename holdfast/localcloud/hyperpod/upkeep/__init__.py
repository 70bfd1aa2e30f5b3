"""Slurm's daemons on nodes in service: noticed when they end or stand still, started again, and told of."""

from holdfast.localcloud.hyperpod.upkeep.decisions import Condition, Daemon, Decision, condition, decide
from holdfast.localcloud.hyperpod.upkeep.thread import Kept, Upkeep

__all__ = ["Condition", "Daemon", "Decision", "Kept", "Upkeep", "condition", "decide"]
