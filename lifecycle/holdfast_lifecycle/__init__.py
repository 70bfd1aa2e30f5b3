"""What runs on a node at its creation: small idempotent steps in dependency order. Standard library, Python 3.9."""

from holdfast_lifecycle._bundle import LifecycleError
from holdfast_lifecycle._context import Context, User, load_context
from holdfast_lifecycle._main import main
from holdfast_lifecycle._runner import Result, Runner
from holdfast_lifecycle._step import Step, StepError, plan

__all__ = [
    "Context",
    "LifecycleError",
    "Result",
    "Runner",
    "Step",
    "StepError",
    "User",
    "load_context",
    "main",
    "plan",
]
