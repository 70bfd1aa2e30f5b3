"""
FSDP2 modules for another rank or another number of ranks, in place.

Like ``private`` this touches fields of torch that are not public, and was tested with the versions named there.
"""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from holdfast_runtime.groups import private

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class _Sums(Protocol):
    def reduce_scatter(self) -> Any:
        """For one parameter group."""


def mesh_like(mesh: "DeviceMesh") -> "DeviceMesh":
    """
    A mesh of one dimension over all ranks that there are now, otherwise as another one.

    DTensor caches what follows from a layout by meshes that are equal, and two are whatever the rank of this process
    is: what was cached when it had another rank would come back with the mesh, and the coordinate, of then. What tells
    meshes of threads apart tells those of ranks apart.
    """
    from torch.distributed.device_mesh import init_device_mesh

    made = init_device_mesh(mesh.device_type, (dist.get_world_size(),), mesh_dim_names=mesh.mesh_dim_names)
    made._thread_id = dist.get_rank()
    return made


def moved(model: nn.Module, rank: int) -> bool:
    """
    Make this process another rank of the meshes that it has, where the parts of all ranks are of one size.

    Nothing else changes, so that all that DTensor and the compiler know of these layouts stays, and stays right.

    Returns:
        False where parts differ in size, or where a mesh is of ``mesh_like``, of which the caches hold several: nothing
        is changed then, and the model has to be cut anew.
    """
    return all(map(_is_cut_evenly, model.parameters())) and private.move_meshes(model, rank)


def _is_cut_evenly(parameter: Tensor) -> bool:
    if not isinstance(parameter, DTensor):
        return False
    mesh = parameter.device_mesh
    return mesh.ndim == 1 and parameter.shape[0] % mesh.size() == 0


@torch.no_grad()
def recut(model: nn.Module, optimizer: torch.optim.Optimizer, mesh: "DeviceMesh") -> None:
    """
    Give each parameter and its optimizer state the size that this rank has of it in a mesh of one dimension.

    What they hold then is 0, until it is put in.
    """
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo

    info: Any = FSDPMeshInfo(mesh, shard_mesh_dim=0)
    for state in private.fsdp_states(model):
        for group in state._fsdp_param_groups:
            group.mesh_info = info
            group.post_forward_mesh_info = info if group.post_forward_mesh_info is not None else None
            for item in group.fsdp_params:
                _cut(item, optimizer, info)


def _cut(item: Any, optimizer: torch.optim.Optimizer, info: Any) -> None:
    parameter: Any = item.sharded_param
    before = parameter._local_tensor
    item.post_forward_mesh_info = info if item.post_forward_mesh_info is not None else None
    shape = torch.empty(item._orig_size, dtype=parameter.dtype, device="meta")
    item._init_sharded_param(nn.Parameter(shape, requires_grad=parameter.requires_grad), item.device, None, info)
    if item.post_forward_mesh_info is not None:
        item._init_sharded_post_forward_param_metadata(shape)
    made: Any = item.sharded_param
    padded = torch.zeros(item.padded_sharded_param_size, dtype=parameter.dtype, device=before.device)
    room = padded.narrow(0, 0, item.sharded_size[0])
    parameter._spec, parameter._local_tensor, parameter.grad = made._spec, room, None
    item.sharded_param, item._sharding_spec = parameter, made._spec
    item._sharded_param_data = padded.view(-1)
    item._setattr_on_modules(parameter)
    item.all_gather_outputs = []
    if hasattr(item, "_unsharded_param"):
        del item._unsharded_param
    kept = optimizer.state.get(parameter, {})
    for name, value in kept.items():
        if isinstance(value, DTensor):
            part: Tensor = torch.zeros_like(room, dtype=value.dtype)
            kept[name] = DTensor(part, made._spec, requires_grad=False)  # type: ignore[no-untyped-call]


T = TypeVar("T", bound=_Sums)


def ordered(model: nn.Module, rounds: T) -> T:
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_custom_reduce_scatter(rounds.reduce_scatter())
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(enable=True)
    return rounds
