"""
One of the ranks of the tests of the reducer: does one thing in several ways and prints digests of what came out.

Arguments: rank, world size, file of the store. The last line of the output is JSON.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

from holdfast_runtime import inprocess
from holdfast_runtime.inprocess import Reducer, digest_of, layout

BUCKET_BYTES = 6000
TAIL = 4


def make_model() -> nn.Module:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.Linear(64, 1))
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))
    return model


def batches(rank: int, count: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        yield torch.randn(8, 16, generator=generator)


def gradients(model: nn.Module) -> int:
    return digest_of([parameter.grad for parameter in model.parameters() if parameter.grad is not None])


def plain(rank: int, world_size: int, *, microbatches: int = 1) -> int:
    """
    The same buckets, reduced one after the other after backward.

    The last one has room for a tail here too: gloo's order of adding up depends on the length.
    """
    model = make_model()
    for batch in batches(rank, microbatches):
        model(batch).square().mean().backward()
    found: dict[nn.Parameter, Tensor] = {}
    parameters = list(model.parameters())
    buckets = layout(parameters, bucket_bytes=BUCKET_BYTES)
    for bucket in buckets:
        parts = [torch.zeros_like(p) if p.grad is None else p.grad * (1 / world_size) for p in bucket]
        tail = torch.zeros(len(parameters) + TAIL if bucket is buckets[-1] else 0)
        flat = torch.cat([*(part.flatten() for part in parts), tail])
        dist.all_reduce(flat)
        sizes = [parameter.numel() for parameter in bucket]
        for parameter, part in zip(bucket, torch.split(flat, [*sizes, tail.numel()]), strict=False):
            found[parameter] = part.view(parameter.shape)
    return digest_of([found[parameter] for parameter in parameters if parameter.grad is not None])


def reduced(rank: int, world_size: int, *, microbatches: int = 1) -> dict[str, object]:
    """With the reducer; twice, the second time after a first backward that nobody used."""
    model = make_model()
    order: list[tuple[int, bool]] = []
    inside = True
    reducer = Reducer(
        list(model.parameters()),
        tail=TAIL,
        bucket_bytes=BUCKET_BYTES,
        on_bucket=lambda number: order.append((number, inside)),
    )
    for _ in range(2):
        order.clear()
        reducer.begin(world_size=world_size)
        inside = True
        for number, batch in enumerate(batches(rank, microbatches)):
            last = number == microbatches - 1
            quiet: Callable[[], AbstractContextManager[None]] = nullcontext if last else reducer.no_sync
            with quiet():
                model(batch).square().mean().backward()
        inside = False
        reducer.check_unchanged()
        reducer.tail.copy_(torch.tensor([1.0, rank, 0.0, 2.0]))
        reducer.finish()
        nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        reducer.check_unchanged()
    return {"gradients": gradients(model), "order": order, "tail": reducer.tail.tolist(), "buckets": reducer.buckets}


def second_backward(rank: int, world_size: int) -> str:
    model = make_model()
    reducer = Reducer(list(model.parameters()), tail=TAIL, bucket_bytes=BUCKET_BYTES)
    reducer.begin(world_size=world_size)
    try:
        for batch in batches(rank, 2):
            model(batch).square().mean().backward()
    except RuntimeError as error:
        reducer.finish()
        return str(error)
    return "it was not noticed"


def half(rank: int, world_size: int) -> dict[str, object]:
    """A model whose last bucket has no room for numbers of 32 bits."""
    torch.manual_seed(2)
    model = nn.Linear(8, 8).to(torch.bfloat16)
    reducer = Reducer(list(model.parameters()), tail=TAIL)
    reducer.begin(world_size=world_size)
    model(torch.ones(2, 8, dtype=torch.bfloat16)).sum().backward()
    reducer.tail.fill_(1.0 + rank)
    from_first = torch.full((3,), 7 + rank, dtype=torch.uint8)
    reducer.finish(from_first=from_first)
    return {"gradients": gradients(model), "tail": reducer.tail.tolist(), "first": from_first.tolist()}


def partly_used(rank: int, world_size: int) -> list[str]:
    """Return what each parameter has: one is used by all ranks, one by the last rank, in an accumulated backward too,
    and one by none."""
    parameters = {name: nn.Parameter(torch.ones(2)) for name in ("all", "last", "first part", "none")}
    reducer = Reducer(list(parameters.values()), tail=TAIL)
    found: list[str] = []
    for _ in range(2):
        reducer.begin(world_size=world_size)
        with reducer.no_sync():
            (parameters["all"] + (parameters["first part"] if rank == world_size - 1 else 0)).sum().backward()
        (parameters["all"] + (parameters["last"] if rank == world_size - 1 else 0)).sum().backward()
        reducer.finish()
        grads = {name: parameter.grad for name, parameter in parameters.items()}
        found += [f"{name}: {'None' if grad is None else round(grad.sum().item(), 3)}" for name, grad in grads.items()]
    return found


def vote(rank: int, world_size: int, *, digest: int) -> list[object]:
    tail = torch.zeros(inprocess.LENGTH)
    inprocess.cast(tail, step=70_001, digest=digest, loss=float(rank))
    dist.all_reduce(tail)
    outcome = inprocess.count(tail, world_size=world_size)
    return [outcome.ready, outcome.mean_loss, outcome.same_step, outcome.same_digest]


def main() -> None:
    rank, world_size, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world_size)
    results = {
        "plain": plain(rank, world_size),
        "reduced": reduced(rank, world_size),
        "microbatches": reduced(rank, world_size, microbatches=3),
        "plain microbatches": plain(rank, world_size, microbatches=3),
        "second": second_backward(rank, world_size),
        "half": half(rank, world_size),
        "partly used": partly_used(rank, world_size),
        "vote": vote(rank, world_size, digest=0xDEADBEEF),
        "different": vote(rank, world_size, digest=0xDEADBEEF ^ (rank == 1)),
    }
    dist.destroy_process_group()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
