"""Node setup: small idempotent steps in dependency order. Standard library, Python 3.9."""

from holdfast_lifecycle.command import main
from holdfast_lifecycle.model import Context, LifecycleError, Step, StepError, load_context, plan
from holdfast_lifecycle.runner import Result, Runner

__all__ = ["Context", "LifecycleError", "Result", "Runner", "Step", "StepError", "load_context", "main", "plan"]
