"""A snapshot of state on a GPU: copied by a stream of its own, beside a forward pass, and whole before the update."""

from collections.abc import Sequence

import pytest
from gpus import needs

torch = pytest.importorskip("torch")

from holdfast_runtime.snapshots import Place, Shard, Snapshots  # noqa: E402

pytestmark = [needs(1), pytest.mark.timeout(300)]
WIDTH, DEADLINE_S = 4096, 30.0


def local(numbers: Sequence[int]) -> Sequence[int]:
    """Agreement of a rank with itself."""
    return numbers


def test_the_copy_is_of_the_moment_though_the_update_is_enqueued_at_once() -> None:
    """The GPU is busy for long when the copy begins, and the host runs ahead of it into the update."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, device="cuda") for _ in range(8)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    snapshots = Snapshots(host="127.0.0.1", settle_s=DEADLINE_S, transfer_s=DEADLINE_S)
    shard = Shard(model, optimizer)
    inputs = torch.randn(WIDTH, WIDTH, device="cuda")

    def join(generation: int, step: int) -> None:
        places = [Place(0, "127.0.0.1", snapshots.port)]
        snapshots.join(shard, rank=0, places=places, generation=generation, resume_step=step, agree=local)

    def forward_and_backward() -> None:
        optimizer.zero_grad()
        for _ in range(20):
            model(inputs).square().mean().backward()

    try:
        join(1, 0)
        forward_and_backward()
        optimizer.step()
        wanted = {name: tensor.clone() for name, tensor in shard.tensors().items()}
        snapshots.take(1)
        forward_and_backward()
        snapshots.before_update()
        optimizer.step()
        assert snapshots.wait() == ""
        torch.cuda.synchronize()
        assert not torch.equal(model[0].weight, wanted["parameter 0.weight"]), "the update came after the snapshot"

        join(2, 1)
        assert snapshots.restore(1) == "memory"

        found = shard.tensors()
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    finally:
        snapshots.close()
