"""Configuration of a node, from itself and its bundle, and the definition of a step."""

from holdfast_lifecycle.model.bundle import (
    LUSTRE,
    AccountingDatabase,
    Health,
    LifecycleError,
    Mount,
    accounting_database,
    mounts,
    remote_write_url,
)
from holdfast_lifecycle.model.context import HOOKS, ON_CREATE, Context, User, interfaces, load_context
from holdfast_lifecycle.model.step import (
    COMPUTE,
    CONTROLLER,
    EVERYWHERE,
    KUBERNETES,
    SLURM,
    Step,
    StepError,
    Work,
    plan,
)

__all__ = [
    "COMPUTE",
    "CONTROLLER",
    "EVERYWHERE",
    "HOOKS",
    "KUBERNETES",
    "LUSTRE",
    "ON_CREATE",
    "SLURM",
    "AccountingDatabase",
    "Context",
    "Health",
    "LifecycleError",
    "Mount",
    "Step",
    "StepError",
    "User",
    "Work",
    "accounting_database",
    "interfaces",
    "load_context",
    "mounts",
    "plan",
    "remote_write_url",
]
