"""Checks before the first step of all that cannot go on in place, with what to do."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from holdfast_common.placement import REACHES, Reach
from holdfast_runtime.groups import UnsupportedError, private
from holdfast_runtime.snapshots import Checkpoints

INSTEAD = "shard it with fully_shard"


def check(model: nn.Module, optimizer: torch.optim.Optimizer, *, world_size: int) -> None:
    for module in model.modules():
        if private.is_fsdp1(module):
            raise UnsupportedError(
                f"the model is wrapped in FullyShardedDataParallel, which keeps its groups for good; {INSTEAD}, which "
                "finds them by name"
            )
    for thing in (model, optimizer):
        kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
        if kind.startswith("deepspeed."):
            raise UnsupportedError(
                f"{kind} makes and keeps groups of its own; {INSTEAD}, or run DeepSpeed under holdfast-run without "
                "Run: it is started again as a whole and goes on from its checkpoint"
            )
        if type(thing).__name__ == "ZeroRedundancyOptimizer":
            raise UnsupportedError(
                f"{kind} has collectives in its step, and a rank that is lost there leaves others with half an update; "
                "use an optimizer of torch.optim: fully_shard divides its state already"
            )
    for name, communicator in private.communicators(model):
        raise UnsupportedError(
            f"{name} communicates by {type(communicator).__name__}, whose memory and groups are those of the processes "
            "that it began with; leave out set_allocate_memory_from_process_group_for_comm, set_symm_mem_for_comm and "
            "custom communication"
        )
    if private.has_separate_group(model):
        raise UnsupportedError(
            "reduce-scatter has groups of its own; leave out set_separate_reduce_scatter_group, they are not made again"
        )
    if private.has_async_tp():
        raise UnsupportedError(
            "torch._inductor.config._micro_pipeline_tp is set: async tensor parallel keeps symmetric memory of the "
            "processes that it began with; leave it out"
        )
    check_meshes(model, world_size=world_size)


def check_meshes(model: nn.Module, *, world_size: int) -> None:
    for parameter in model.parameters():
        mesh = getattr(parameter, "device_mesh", None)
        root = mesh._get_root_mesh() if mesh is not None else None
        if root is not None and root.size() != world_size:
            shape = " x ".join(map(str, root.shape))
            names = f" ({', '.join(root.mesh_dim_names)})" if root.mesh_dim_names else ""
            raise UnsupportedError(
                f"the mesh is {shape}{names}, {root.size()} ranks, and the job has {world_size}; the world must be a "
                "multiple of tp x pp, and the other dimensions its quotient"
            )


def check_tier(tier: object) -> None:
    if tier is not None and not isinstance(tier, Checkpoints):
        raise UnsupportedError(
            f"checkpoint is a {type(tier).__name__}, which writes the state of one rank for all; give "
            "holdfast_runtime.snapshots.Checkpoints(folder), where each rank writes its part"
        )


def snapshots_asked(every: int | str | None) -> int | None:
    """
    Read ``snapshot_every``: updates, 0 for as often as their cost allows, None for never.

    Raises:
        UnsupportedError: anything else.
    """
    if every is None:
        return 0
    if every == "never":
        return None
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise UnsupportedError(
            f'snapshot_every is {every!r}; allowed: 1 or more updates, "never", or nothing: then as often as the '
            "measured cost allows, and not at all where each part of the model is in two places"
        )
    return every


def survival_asked(survive: str | None) -> Reach:
    """
    Read ``survive``.

    Raises:
        UnsupportedError: anything but what may be lost.
    """
    for reach in REACHES:
        if survive == reach:
            return reach
    if survive is None:
        return "nothing"
    raise UnsupportedError(f"survive is {survive!r}; allowed: {', '.join(map(repr, REACHES))}, or none of them")


def check_length(every: int, *, total: int) -> None:
    if every > total:
        raise UnsupportedError(
            f"snapshot_every is {every} and the run has {total} updates, so there would be no snapshot; allowed: 1 to "
            f"{total}"
        )


def in_update(function: object) -> str:
    return (
        f"the optimizer calls the collective {function}: a rank that is lost there leaves others with half an update; "
        "call it before step.update(loss), as for clipping, also where a hook of the optimizer calls it, or use an "
        "optimizer whose step needs no other rank"
    )


class NoCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Around the first update: what it raises is an error of the script, before anything is committed."""

    def __init__(self, reason: Callable[[object], str] = in_update) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._reason = reason

    def __torch_dispatch__(self, function: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace in ("c10d", "_c10d_functional"):
            raise UnsupportedError(self._reason(function))
        return function(*args, **(kwargs or {}))
