"""Definition and order of steps. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from holdfast_lifecycle.model.bundle import LifecycleError
from holdfast_lifecycle.model.context import HOOKS, Context

CONTROLLER = "Controller"
LOGIN = "Login"
COMPUTE = "Compute"
KUBERNETES = "Kubernetes"
SLURM = (CONTROLLER, LOGIN, COMPUTE)
EVERYWHERE = (*SLURM, KUBERNETES)


class StepError(Exception):
    """A step failed: expected, found, and what to do."""

    def __init__(self, *, expected: str, seen: str, action: str) -> None:
        super().__init__(expected, seen, action)
        self.expected = expected
        self.seen = seen
        self.action = action


class Work(Protocol):
    def check(self, context: Context, /) -> bool: ...

    def apply(self, context: Context, /) -> None: ...

    def verify(self, context: Context, /) -> str:
        """Return a remark, possibly empty; raises StepError if the node is not as required."""


class Step(NamedTuple):
    """Requirement of a node. ``load`` returns work that runs in a process of its own, killed after ``timeout_s``."""

    name: str
    load: Callable[[], Work]
    timeout_s: float
    needs: tuple[str, ...] = ()
    roles: tuple[str, ...] = EVERYWHERE
    hooks: tuple[str, ...] = HOOKS


def plan(steps: Sequence[Step], *, role: str, hook: str, only: str = "") -> list[Step]:
    """Steps of a role under a hook, in dependency order; refuses unknown names and cycles."""
    named = {step.name: step for step in steps}
    if len(named) != len(steps):
        raise LifecycleError("step names must be unique, got " + ", ".join(step.name for step in steps))
    for step in steps:
        unknown = sorted(set(step.needs) - named.keys())
        if unknown:
            raise LifecycleError(f"step '{step.name}' needs unknown {', '.join(unknown)}; known: {', '.join(named)}")
    if only and only not in named:
        raise LifecycleError(f"unknown step '{only}'; known: {', '.join(named)}")
    ordered: dict[str, Step] = {}
    for step in steps:
        _visit(step, named, ordered, ())
    here = [step for step in ordered.values() if role in step.roles and hook in step.hooks]
    return [step for step in here if only in ("", step.name)]


def _visit(step: Step, named: dict[str, Step], ordered: dict[str, Step], path: tuple[str, ...]) -> None:
    if step.name in path:
        raise LifecycleError(f"steps need each other in a circle: {' -> '.join((*path, step.name))}")
    if step.name not in ordered:
        for need in step.needs:
            _visit(named[need], named, ordered, (*path, step.name))
        ordered[step.name] = step
