"""
All that is touched of torch behind its public interface, in one place, with the versions that it was tested with.

Meshes, DTensors and functional collectives keep the *names* of groups and look them up at each use, so a group that is
made again under its name is all they need. FSDP2's mesh infos and pipeline stages keep the groups themselves.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as _c10d
from torch import nn
from torch._C import _distributed_c10d

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor

TESTED = ("2.13", "2.14")
"""Versions of torch whose private fields are as this file expects them."""
STAGE_GROUPS = ("group", "_downstream_group", "_upstream_group")
"""Fields of a pipeline's stage that hold its group; the two by direction are there since torch 2.14."""
c10d: Any = _c10d
_meshes: "list[weakref.ref[DeviceMesh]]" = []
_watched = False
OF_CHECKPOINTS = "holdfast checkpoints"
"""Description of the group in which the runtime writes its own checkpoints."""
_kinds: Any = _distributed_c10d.OpType  # type: ignore[attr-defined]
WHOLE_WAITS = tuple(
    int(kind.value) for kind in (_kinds.SEND, _kinds.RECV, _kinds.RECVANYSOURCE, _kinds.COALESCED, _kinds.UNKNOWN)
)


class UnsupportedError(ValueError):
    """A feature of the script cannot be restored in place; the text names it and what to do."""


def check_version(version: str = torch.__version__) -> None:
    if ".".join(version.split(".")[:2]) not in TESTED:
        raise UnsupportedError(
            f"torch is {version}; sharded jobs go on in place with {', '.join(f'{one}.x' for one in TESTED)} only, "
            "because groups are restored through fields that other versions may not have. Install one of those, or "
            "use torch.distributed.init_process_group and checkpoints"
        )


def number_groups_from(number: int) -> None:
    c10d._world.group_count = number


def next_number() -> int:
    return int(c10d._world.group_count)


def groups() -> list[dist.ProcessGroup]:
    return [*c10d._world.pg_map]


def name_of(group: Any) -> str:
    """Torch's name of a group; empty for one that this rank is not in."""
    return str(c10d._world.pg_names.get(group, ""))


def group_of(name: str) -> Any:
    return c10d._resolve_process_group(name)


def local_part(parameter: "DTensor") -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of this rank's part of a parameter, and where it begins in the whole."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    return compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)


def set_longest_wait(seconds: float) -> None:
    """Of a collective of any group for its peers."""
    set_timeout = getattr(dist, "set_timeout", None) or c10d._set_pg_timeout  # public since torch 2.14
    for group in groups():
        set_timeout(timedelta(seconds=seconds), group)


def forget_groups() -> None:
    """As ``_abort_process_group`` of torch ends: ``destroy_process_group`` would wait for threads of NCCL's groups."""
    c10d._update_default_pg(None)
    world = c10d._world
    for registry in (
        world.pg_map,
        world.pg_names,
        world.pg_group_ranks,
        world.pg_backend_config,
        world.pg_to_tag,
        world.tags_to_pg,
        world.pg_coalesce_state,
    ):
        registry.clear()
    c10d._unregister_all_process_groups()
    world.group_count = 0


@contextmanager
def gloo_made_by(maker: Callable[[Any], Any]) -> Iterator[None]:
    module: Any = c10d
    real = module.ProcessGroupGloo
    module.ProcessGroupGloo = maker(real)
    try:
        yield
    finally:
        module.ProcessGroupGloo = real


def watch_new_groups(made: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]) -> None:
    real = c10d._new_group_with_tag

    @functools.wraps(real)
    def new_group(*arguments: Any, **options: Any) -> Any:
        return made(real, arguments, options)

    c10d._new_group_with_tag = new_group
    _watch_meshes()


def _watch_meshes() -> None:
    global _watched
    if _watched:
        return
    _watched = True
    from torch.distributed.device_mesh import DeviceMesh

    real = DeviceMesh.__init__

    def init(self: DeviceMesh, *arguments: Any, **options: Any) -> None:
        _meshes.append(weakref.ref(self))
        real(self, *arguments, **options)

    DeviceMesh.__init__ = init  # type: ignore[method-assign]


def forget_unscaled(scaler: torch.amp.GradScaler) -> None:
    """A scaler keeps until its ``update`` which gradients it has unscaled, and no ``state_dict`` has that."""
    scaler._per_optimizer_states.clear()


@functools.cache
def refuse_async_saves() -> None:
    """Have ``dcp.async_save`` raise UnsupportedError where it needs other ranks, but in the runtime's own group."""
    from torch.distributed.checkpoint import _async_process_executor, _async_thread_executor

    for executor in (
        _async_process_executor._ProcessBasedAsyncCheckpointExecutor,
        _async_thread_executor._ThreadBasedAsyncCheckpointExecutor,
    ):
        executor.execute_save = _without_peers(executor.execute_save)  # type: ignore[method-assign]


def _without_peers(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def execute_save(*arguments: Any, process_group: Any = None, no_dist: bool = False, **options: Any) -> Any:
        is_of_several = not no_dist and dist.is_initialized() and dist.get_world_size(process_group) > 1
        if is_of_several and getattr(process_group, "group_desc", "") != OF_CHECKPOINTS:
            raise UnsupportedError(
                "dcp.async_save uses other ranks in a thread beside the training, and a rank that is lost there cannot "
                "be replaced; give Run(checkpoint=Checkpoints(folder), checkpoint_every=N), which writes beside the "
                "training too, or call dcp.save in run.steps(total, between=...)"
            )
        return real(*arguments, process_group=process_group, no_dist=no_dist, **options)

    return execute_save


def watch_waits(of_work: Callable[..., Any], of_tensor: Callable[..., Any]) -> None:
    """From now on these wait for collectives: each is given torch's function and its arguments."""
    import torch.distributed._functional_collectives as functional

    real_work, real_tensor = c10d.Work.wait, functional.wait_tensor
    c10d.Work.wait = lambda *arguments, **options: of_work(real_work, *arguments, **options)

    @functools.wraps(real_tensor)
    def wait_tensor(tensor: Any) -> Any:
        return of_tensor(real_tensor, tensor)

    functional.wait_tensor = wait_tensor


def waits_as_a_whole(work: Any) -> bool:
    """
    Whether a work can be waited for only without a time limit: at that of a send or a receive gloo ends all connections
    of the group, and its reduce-scatter, which is of several works, does not tell whether it has ended.
    """
    return int(work._get_op_type()) in WHOLE_WAITS


def has_async_tp() -> bool:
    inductor = sys.modules.get("torch._inductor.config")
    return bool(getattr(inductor, "_micro_pipeline_tp", False))


def _alive_meshes() -> "list[DeviceMesh]":
    return [mesh for reference in _meshes if (mesh := reference()) is not None]


def forget_meshes() -> None:
    alive = _alive_meshes()
    _meshes[:] = map(weakref.ref, alive)
    for mesh in alive:
        getattr(mesh, "_pg_registry", {}).clear()


def remember_meshes() -> None:
    for mesh in _alive_meshes():
        for name in getattr(mesh, "_dim_group_names", ()):
            group = c10d._resolve_process_group(name)
            mesh._get_root_mesh()._pg_registry[name] = group
            mesh._pg_registry[name] = group


def move_meshes(model: nn.Module, rank: int) -> bool:
    """Have each mesh the coordinate of this rank. False, with none changed, where one tells ranks apart itself."""
    meshes = [*_alive_meshes(), *(info.mesh for info in fsdp_mesh_infos(model))]
    if any(mesh._thread_id is not None for mesh in meshes):
        return False
    for mesh in meshes:
        mesh._rank = rank
        mesh._coordinate_on_dim = mesh._compute_coordinate_on_dim()
    return True


def is_fsdp1(module: nn.Module) -> bool:
    from torch.distributed.fsdp import FullyShardedDataParallel

    return isinstance(module, FullyShardedDataParallel)


def fsdp_states(model: nn.Module) -> list[Any]:
    from torch.distributed.fsdp._fully_shard._fsdp_state import _get_module_fsdp_state

    found: dict[int, Any] = {}
    for module in model.modules():
        state = _get_module_fsdp_state(module)
        if state is not None:
            found[id(state)] = state
    return [*found.values()]


def fsdp_mesh_infos(model: nn.Module) -> list[Any]:
    found: dict[int, Any] = {}
    for state in fsdp_states(model):
        for group in state._fsdp_param_groups:
            for info in (group.mesh_info, group.post_forward_mesh_info, *(p.mesh_info for p in group.fsdp_params)):
                if info is not None:
                    found[id(info)] = info
    return [*found.values()]


def communicators(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for state in fsdp_states(model):
        for group in state._fsdp_param_groups:
            for place in ("_all_gather_comm", "_reduce_scatter_comm"):
                made = getattr(group, place, None)
                if made is not None and not type(made).__name__.startswith("Default"):
                    yield group._module_fqn or "the root", made


def has_separate_group(model: nn.Module) -> bool:
    return any(getattr(info, "reduce_scatter_process_group", None) is not None for info in fsdp_mesh_infos(model))


def reset_fsdp(model: nn.Module) -> None:
    """
    FSDP2 forgets the step that broke: parameters are those of this rank again, not the gathered ones.

    ``reset_iter_state`` leaves gradients in the unsharded parameters, and the next step would add to them in silence.
    """
    for state in fsdp_states(model):
        if state._is_root:
            state._reset_iter_state()
    clear_unsharded(model)


def forget_fsdp(model: nn.Module) -> None:
    """FSDP2 lets its groups go: whoever holds one keeps its threads."""
    for info in fsdp_mesh_infos(model):
        for name in ("shard_process_group", "replicate_process_group", "reduce_scatter_process_group"):
            if hasattr(info, name):
                setattr(info, name, None)


def renew_fsdp(model: nn.Module) -> None:
    for info in fsdp_mesh_infos(model):
        info.__post_init__()  # asks its mesh for the groups, by name


def clear_unsharded(model: nn.Module) -> None:
    for state in fsdp_states(model):
        for group in state._fsdp_param_groups:
            for parameter in group.fsdp_params:
                parameter.unsharded_accumulated_grad = None
                if hasattr(parameter, "_unsharded_param"):
                    parameter._unsharded_param.grad = None


def stages_of(schedule: Any) -> list[Any]:
    return [*schedule._stages] if hasattr(schedule, "_stages") else [schedule._stage]


def group_names_of(schedule: Any) -> list[str]:
    """Names of its stages' groups, empty for the default one. Raises: UnsupportedError: groups for each direction."""
    stages = stages_of(schedule)
    if any(getattr(stage, "p2p_per_direction", False) for stage in stages):
        raise UnsupportedError(
            "the pipeline has a group for each direction, which cannot be restored in place; "
            "unset TORCH_DISTRIBUTED_PIPELINE_PER_DIRECTION_P2P and TORCH_DISTRIBUTED_USE_TORCHCOMMS"
        )
    return [name_of(stage.group) if stage.group is not None else "" for stage in stages]


def forget_pipeline(schedule: Any) -> None:
    for stage in stages_of(schedule):
        _give_group(stage, None)


def _give_group(stage: Any, group: Any) -> None:
    for field in STAGE_GROUPS:
        if hasattr(stage, field):
            setattr(stage, field, group)


def step_alone(schedule: Any) -> bool:
    """
    Have its stages do a step in which they ask nobody for shapes; ``renew_pipeline`` ends that.

    Returns:
        False where the script has not given them (``input_args`` and ``output_args`` of PipelineStage).
    """
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining._utils import InferenceMode

    asks = InferenceMode.needs_dynamic
    for stage in stages_of(schedule):
        if not isinstance(stage, PipelineStage) or asks(stage._user_meta, stage_has_backward=True):
            return False

    def agreed(stages: list[Any], *_: Any) -> None:
        for stage in stages:
            stage._inference_mode = InferenceMode.STATIC

    schedule._warmup_p2p = agreed
    return True


def renew_pipeline(schedule: Any, names: list[str]) -> None:
    """
    Its stages have their groups again, and nothing is left of the step that broke.

    A newcomer's stage asks its neighbours for shapes in its first step, so all do.
    """
    for stage, name in zip(stages_of(schedule), names, strict=True):
        _give_group(stage, c10d._resolve_process_group(name) if name else None)
        stage.clear_runtime_states()
        for kept in (stage.fwd_cache, stage.bwd_cache, stage.backward_state, stage.dw_runner):
            kept.clear()
    schedule._internal_losses.clear()
    vars(schedule).pop("_warmup_p2p", None)
    for field in ("_stage_forward_initialized", "_stage_backward_initialized"):
        for name in (field, field.replace("_stage_", "_stages_")):
            if hasattr(schedule, name):
                setattr(schedule, name, False)


def data_mesh(model: nn.Module) -> "DeviceMesh | None":
    """Over which FSDP2 divides the batch; None where it does not."""
    infos = fsdp_mesh_infos(model)
    return infos[0].mesh if infos else None
