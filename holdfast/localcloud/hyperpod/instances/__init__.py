"""Procedures on instances (prepare, replace, reboot, remove), their nodes, cluster-wide files, and memory."""

from holdfast.localcloud.hyperpod.instances.ami import shared_home
from holdfast.localcloud.hyperpod.instances.checks import AGENT
from holdfast.localcloud.hyperpod.instances.machines import Machines
from holdfast.localcloud.hyperpod.instances.members import Members
from holdfast.localcloud.hyperpod.instances.memory import Memory
from holdfast.localcloud.hyperpod.instances.procedures import Procedure
from holdfast.localcloud.hyperpod.instances.turns import turns_mount

__all__ = ["AGENT", "Machines", "Members", "Memory", "Procedure", "shared_home", "turns_mount"]
