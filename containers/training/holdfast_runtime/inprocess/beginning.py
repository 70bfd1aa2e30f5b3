"""Where a sharded job begins: in place of ``torch.distributed.init_process_group``."""

import os

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from holdfast_runtime.groups import Recorded, check_version
from holdfast_runtime.inprocess.member import Member

_begun: list[Member] = []


def init_process_group(backend: str | None = None) -> None:
    """
    Make the default process group, so that it and all groups made from now on come back after a failure.

    To be called where ``torch.distributed.init_process_group`` was, before meshes and ``fully_shard``. Returns once
    this process has a rank; a spare waits here. Then ``RANK`` and ``WORLD_SIZE`` are set, and ``torch.distributed``
    works as usual. A process that takes the rank of a lost one makes its model alone: until ``Run``, its collectives
    end at once and move nothing, and ``Run`` brings the state.

    Without a launcher it is ``torch.distributed.init_process_group``, or a group of one where no rank is set.

    Args:
        backend: As torch has it. Default: gloo for the host, and NCCL for GPUs where there are any.

    Raises:
        ValueError: this version of torch was not tested, or groups are there already.
        StoppedError: the launcher has ended the job, or this spare was not needed.
    """
    backend = backend or ("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    if dist.is_initialized():
        raise ValueError(
            "torch.distributed has process groups already; call holdfast_runtime.init_process_group() in place of "
            "torch.distributed.init_process_group(), before meshes and fully_shard, which makes the group by itself"
        )
    if "HOLDFAST_CONTROL_FD" not in os.environ:
        alone = {} if "RANK" in os.environ else {"store": HashStore(), "rank": 0, "world_size": 1}
        dist.init_process_group(backend, **alone)  # type: ignore[arg-type]
        return
    check_version()
    recorded = Recorded()
    recorded.watch()
    member = Member(None, backend=backend, tier=None, recorded=recorded)
    recorded.wait_s = member.deadlines.progress + member.deadlines.ready
    member.begin()
    _begun.append(member)


def begun() -> Member | None:
    """The member that ``init_process_group`` has made, once."""
    return _begun.pop() if _begun else None
