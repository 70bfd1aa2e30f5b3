"""
Training that outlives its processes and its nodes.

Tier 0 is ``holdfast-run`` around any script; tier 1 its store, tier 2 ``holdfast_runtime.data``, tier 3 ``Run``.
Nothing of torch is imported before it is asked for: the launcher uses this package too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast_runtime.inprocess import (
        CheckpointTier,
        DivergenceError,
        Run,
        Stateful,
        Step,
        StoppedError,
        deterministic,
        device,
        elastic_event_detected,
        init_process_group,
    )

__all__ = [
    "CheckpointTier",
    "DivergenceError",
    "Run",
    "Stateful",
    "Step",
    "StoppedError",
    "deterministic",
    "device",
    "elastic_event_detected",
    "init_process_group",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from holdfast_runtime import inprocess

        return getattr(inprocess, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
