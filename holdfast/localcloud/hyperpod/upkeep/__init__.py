"""Slurm's daemons on nodes in service: noticed when they end or stand still, started again, and told of."""

from holdfast.localcloud.hyperpod.upkeep._decide import Daemon, Decision, decide
from holdfast.localcloud.hyperpod.upkeep._upkeep import Kept, Upkeep

__all__ = ["Daemon", "Decision", "Kept", "Upkeep", "decide"]
