"""Start of a sharded job, in place of ``torch.distributed.init_process_group``."""

import contextlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import HashStore

from holdfast_runtime.elastic import Rounds, elastic_asked, is_cut_by_rows, sizes_of
from holdfast_runtime.elastic import check as check_elastic
from holdfast_runtime.groups import RecordedGroups, UnsupportedError, check_version, nccl, ordered
from holdfast_runtime.inprocess.member import Member, Training
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.tiers import CheckpointTier
from holdfast_runtime.sharded import (
    JobCheckpoints,
    JobSnapshots,
    Sharded,
    check,
    check_tier,
    snapshots_asked,
    survival_asked,
)
from holdfast_runtime.snapshots import Checkpoints
from holdfast_runtime.state import AnyGenerator, inner_optimizers

_COUNTS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""Variables with the number of processes that torchrun, mpirun and srun have started."""
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
        backend: As torch has it; "nccl" is NCCL for GPUs and gloo for the host, as is the default where there are
            GPUs. Default without any: gloo.

    Raises:
        ValueError: this version of torch was not tested, or groups are there already.
        StoppedError: the launcher has ended the job, or this spare was not needed.
    """
    with unsupported_reported():
        backend = chosen_backend(backend, on_gpu=torch.cuda.is_available(), sharded=True)
        if dist.is_initialized():
            raise UnsupportedError(
                "torch.distributed has process groups already; call holdfast_runtime.init_process_group() in place of "
                "torch.distributed.init_process_group(), before meshes and fully_shard, which makes the group by itself"
            )
        if "HOLDFAST_CONTROL_FD" in os.environ:
            check_version()
    if "HOLDFAST_CONTROL_FD" not in os.environ:
        alone = {} if "RANK" in os.environ else {"store": HashStore(), "rank": 0, "world_size": 1}
        dist.init_process_group(backend, **alone)  # type: ignore[arg-type]
        return
    recorded = RecordedGroups()
    recorded.watch()
    member = Member(backend=backend, recorded=recorded)
    recorded.wait_s = member.deadlines.progress + member.deadlines.ready
    member.begin()
    _begun.append(member)


def chosen_backend(backend: str | None, *, on_gpu: bool, sharded: bool) -> str:
    """
    Return the backend of a job, with what it needs in the environment. Ranks of a sharded job agree on the host.

    Raises:
        UnsupportedError: the environment has a value that ends survivors.
    """
    backend = backend or ("nccl" if on_gpu else "gloo")
    if "nccl" not in backend:
        return backend
    nccl.set_environment()
    return nccl.MIXED if sharded else "nccl"


@contextlib.contextmanager
def unsupported_reported() -> Iterator[None]:
    """Report an UnsupportedError that is raised before this process has a member, so that the job ends at once."""
    try:
        yield
    except UnsupportedError as error:
        if "HOLDFAST_CONTROL_FD" in os.environ:
            Member(backend="gloo").reporter.refuse(error)
        raise


def _check_model(model: nn.Module) -> None:
    """Raise UnsupportedError for a model in a wrapper that reduces gradients itself, and for sparse gradients."""
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    wrapper = next((type(each).__name__ for each in model.modules() if isinstance(each, wrappers)), "")
    if wrapper:
        raise UnsupportedError(f"the model is in {wrapper}; give Run the model without it: Run reduces the gradients")
    sparse = [name for name, each in model.named_modules() if getattr(each, "sparse", False) is True]
    if sparse:
        raise UnsupportedError(
            f"{', '.join(sparse)} has sparse=True, and sparse gradients cannot be reduced; make it with sparse=False"
        )


def check_added(added: Mapping[str, object]) -> None:
    """Raise UnsupportedError for objects of ``Run(state=)`` that have no ``state_dict`` and ``load_state_dict``."""
    names = [
        name
        for name, item in added.items()
        if not isinstance(item, AnyGenerator)
        and not all(callable(getattr(item, method, None)) for method in ("state_dict", "load_state_dict"))
    ]
    if names:
        with unsupported_reported():
            raise UnsupportedError(
                f"state has {', '.join(names)} without state_dict() and load_state_dict(); give objects with both, "
                "such as torch modules and schedulers, or a class of your own, or random generators"
            )


def check_graphs(model: nn.Module, *, on_gpu: bool) -> None:
    """Raise UnsupportedError for CUDA graphs: NCCL cannot abort a communicator that a captured graph refers to."""
    inductor = sys.modules.get("torch._inductor.config")
    found = "torch._inductor.config.triton.cudagraphs is set" if inductor and inductor.triton.cudagraphs else ""
    for name, module in model.named_modules():
        for compiled in (module, module._compiled_call_impl):
            read = getattr(compiled, "get_compiler_config", None)
            if read is not None and (read() or {}).get("triton.cudagraphs"):
                found = f"{name or 'the model'} is compiled with CUDA graphs"
    if on_gpu and torch.cuda.is_current_stream_capturing():
        found = "a CUDA graph is being captured"
    if on_gpu and found:
        raise UnsupportedError(
            f"{found}, and a graph with a collective keeps its communicator from being aborted when a rank is lost; "
            'compile with mode="default" or mode="max-autotune-no-cudagraphs"'
        )


def _check_alone(environment: Mapping[str, str]) -> None:
    """Raise UnsupportedError where another launcher has started several processes, which would not train together."""
    for name in _COUNTS:
        count = environment.get(name, "")
        if count.isdecimal() and int(count) > 1:
            raise UnsupportedError(
                f"{name} is {count}, and without holdfast-run each process trains a model of its own; start the "
                f"script with holdfast-run, or remove {name} from its environment to train alone"
            )


def _check_steps(state: TrainingState) -> None:
    """Raise UnsupportedError for an optimizer or a scheduler whose step needs an argument."""
    if needs := _needed(state.optimizer):
        raise UnsupportedError(
            f"the step of {type(state.optimizer).__name__} needs {needs}, and an update is made of gradients that are "
            "there already; use an optimizer whose step needs no argument, such as torch.optim.AdamW"
        )
    scheduler: Any = state.scheduler
    if scheduler is not None and (needs := _needed(scheduler)):
        name = type(scheduler).__name__
        raise UnsupportedError(
            f"Run(scheduler=...) steps {name} after each update, and its step needs {needs}; give it to "
            f'Run(state={{"scheduler": scheduler}}), and call scheduler.step({needs}) under `if step.done:` with a '
            "value that all ranks have, such as step.loss"
        )


def _check_parts(optimizer: torch.optim.Optimizer, *, sharded: bool) -> None:
    """Raise UnsupportedError for an optimizer around another one, of whose state a newcomer would get nothing."""
    inner = next(iter(inner_optimizers(optimizer)), None)
    name, has_own = type(optimizer).__name__, type(optimizer).state_dict is not torch.optim.Optimizer.state_dict
    if inner is not None and sharded:
        raise UnsupportedError(
            f"{name} holds {type(inner).__name__}, and the state of a sharded model is that of one optimizer, by "
            f"parameter; keep what {name} adds in self.state[parameter] of a subclass of {type(inner).__name__}"
        )
    if inner is not None and not has_own:
        raise UnsupportedError(
            f"{name} holds {type(inner).__name__}, whose state its state_dict() does not have: a process that takes "
            f"over a rank would begin without it; give {name} a state_dict() and a load_state_dict() with the state of "
            "both"
        )


def _needed(thing: object) -> str:
    """Return the first argument that the step of an object cannot be called without; empty for none."""
    # Of the class: torch puts a wrapper without the first argument over the method of an optimizer.
    step = getattr(type(thing), "step", None)
    given = [*inspect.signature(step).parameters.values()][1:] if callable(step) else []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return next((each.name for each in given if each.default is each.empty and each.kind in positional), "")


def _check_plain(state: TrainingState, *, survive: str | None, elastic: int | str | None) -> None:
    """Raise UnsupportedError for what needs ``init_process_group``, where it was not called."""
    if elastic_asked(elastic, sizes=sizes_of(os.environ)):
        raise UnsupportedError(
            f"elastic is {elastic} logical ranks, which is for sharded jobs; call "
            'holdfast_runtime.init_process_group() and fully_shard first, or give elastic="throughput"'
        )
    if any(hasattr(p, "to_local") for p in state.model.parameters()):
        raise UnsupportedError(
            "the model is sharded, in groups that are not made again after a failure; call "
            "holdfast_runtime.init_process_group() before its mesh and fully_shard"
        )
    if dist.is_initialized():
        raise UnsupportedError(
            "torch.distributed has a process group already; delete torch.distributed.init_process_group(), or the use "
            "of Accelerate and its Trainer, which call it (the recipe hugging_face.py has a loop without them): Run "
            "connects the ranks. A model that will be sharded needs holdfast_runtime.init_process_group() in its place"
        )
    if survive is not None:
        raise UnsupportedError(
            f"survive is {survive!r}, which is for sharded jobs; call holdfast_runtime.init_process_group() first, "
            "or leave it out: of replicas each rank has all"
        )


def begun(
    state: TrainingState,
    *,
    pipeline: Any,
    snapshot_every: int | str | None,
    survive: str | None,
    tier: CheckpointTier | Checkpoints | None,
    elastic: int | str | None = None,
) -> Member | None:
    """
    The member that ``init_process_group`` has made, with the model of its script; None where it was not called.

    Raises:
        UnsupportedError: the program cannot go on in place. The job is told, and ends.
        RuntimeError: a process has one run.
    """
    if not _begun:
        with unsupported_reported():
            _check_model(state.model)
            check_graphs(state.model, on_gpu=state.on_gpu)
            _check_steps(state)
            _check_parts(state.optimizer, sharded=False)
            if "HOLDFAST_CONTROL_FD" in os.environ:
                _check_plain(state, survive=survive, elastic=elastic)
            else:
                _check_alone(os.environ)
        return None
    member = _begun[0]
    if member.training is not None:
        raise UnsupportedError(
            "Run was made twice in this process, and names of parameters and state are of one model; put both models "
            "into one torch.nn.ModuleDict, and their parameters into one optimizer"
        )
    assert member.recorded is not None
    try:
        check_tier(tier)
        every, reach = snapshots_asked(snapshot_every), survival_asked(survive)
        _check_model(state.model)
        check_graphs(state.model, on_gpu=state.on_gpu)
        check(state.model, state.optimizer, world_size=member.own.world_size)
        _check_steps(state)
        _check_parts(state.optimizer, sharded=True)
        sizes = sizes_of(os.environ)
        logical = elastic_asked(elastic, sizes=sizes)
        if sizes or logical:
            check_elastic(state.model, member.recorded, logical=logical, pipelines=pipeline is not None)
    except UnsupportedError as error:
        member.reporter.refuse(error)
        raise
    pipelines = [] if pipeline is None else [*pipeline] if isinstance(pipeline, list | tuple) else [pipeline]
    sharded = Sharded(state.model, member.recorded, pipelines=pipelines)
    kept = (
        None
        if every is None
        else JobSnapshots(
            state.shard,
            every=every,
            transfer_s=member.deadlines.transfer,
            faults=member.faults,
        )
    )
    stored = JobCheckpoints(tier, state.shard) if isinstance(tier, Checkpoints) else None
    rounds = ordered(state.model, Rounds(logical)) if logical else None
    # A script that may be of any size keeps nothing of its rank; others may have read it before they made their model.
    same = not pipelines and not member.recorded.of_some_ranks() and is_cut_by_rows(state.model)
    member.train(
        Training(
            state=state,
            tier=tier,
            sharded=sharded,
            kept=kept,
            stored=stored,
            elastic=bool(sizes),
            rounds=rounds,
            moves=same and elastic is not None,
            survive=reach,
        )
    )
    return member
