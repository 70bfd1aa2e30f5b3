"""
A fully sharded job (FSDP2, gloo) loses a node and goes on from its buddies' memory, with the same bits.

Run as a program, this file is one process of the job: it takes views on standard input and says on standard output what
it did. The test is the launcher, and plans with the launcher's own ``next_view``.
"""

import ctypes
import hashlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from warm import Warm, warm

from holdfast_runtime.membership import Policy, RankStatus, Slot, Status, View, next_view

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
STEPS, EVERY, WORLD = 8, 3, 4
NODES = (0, 0, 1, 1)


class Job:
    """Processes of two nodes and a spare node."""

    def __init__(self, folder: Path, stack: ExitStack, ready: Warm, *, processes: int) -> None:
        self.folder = folder
        self.processes = [stack.enter_context(ready.program(__file__, str(folder))) for _ in range(processes)]
        self.generation = 0

    def say(self, index: int, message: dict[str, Any]) -> None:
        print(json.dumps(message), file=self.processes[index].stdin, flush=True)

    def hear(self, index: int) -> dict[str, Any]:
        """The next message of a process; "gone" after its death."""
        line = self.processes[index].stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"type": "gone"}
        return answer

    def run(self, members: list[int], view: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """Send a view to processes, by rank; what each did until it was ready again, or gone."""
        self.generation += 1
        told = [self.answers[index] for index in members]
        places = [[node, "127.0.0.1", answer["port"]] for node, answer in zip(NODES, told, strict=True)]
        for rank, index in enumerate(members):
            donors = view.get("donors", [[]] * WORLD)[rank]
            self.say(index, {**view, "generation": self.generation, "rank": rank, "places": places, "donors": donors})
        done: list[list[dict[str, Any]]] = []
        for index in members:
            done.append([])
            while (message := self.hear(index))["type"] == "did":
                done[-1].append(message)
            self.answers[index] = message
        return done

    def gather(self) -> None:
        self.answers = [self.hear(index) for index in range(len(self.processes))]


@pytest.fixture(scope="module")
def ready() -> Iterator[Warm]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with warm("pytest", "torch._dynamo", "torch.distributed.fsdp", "holdfast_runtime.snapshots",
              environment=environment) as made:  # fmt: skip
        yield made


def status(answer: dict[str, Any], slot: Slot, rank: int) -> RankStatus:
    return RankStatus(
        slot=slot,
        rank=rank,
        committed_step=answer["committed_step"],
        state="none" if rank < 0 else "valid",
        twins=(),
        snapshots=tuple((owner, step) for owner, step in answer["held"]),
    )


@pytest.mark.timeout(110)
@pytest.mark.parametrize(
    "kill",
    [{"step": 7, "phase": "forward"}, pytest.param({"step": 5, "phase": "copy"}, marks=pytest.mark.e2e)],
    ids=str,
)
def test_a_lost_node_is_rebuilt_from_buddies_bit_for_bit(ready: Warm, tmp_path: Path, kill: dict[str, Any]) -> None:
    with ExitStack() as stack:
        job = Job(tmp_path, stack, ready, processes=6)
        job.gather()
        calm = job.run([0, 1, 2, 3], {"resume_step": 0})
        assert [message["step"] for message in calm[0]] == list(range(1, STEPS + 1))
        job.run([0, 1, 2, 3], {"resume_step": 0, "kill": {**kill, "ranks": [2, 3]}})
        assert [job.answers[index]["type"] for index in range(4)] == ["ready", "ready", "gone", "gone"]

        planned = _plan(job)
        assert planned.sources == ("memory", "memory", "buddy", "buddy")
        assert planned.lost_steps <= 2 * EVERY
        donors = [list(items) for items in planned.donors]
        again = job.run([0, 1, 4, 5], {"resume_step": planned.resume_step, "donors": donors})
        for rank in range(WORLD):
            assert [message["source"] for message in again[rank]][:1] == [planned.sources[rank]]
            expected = {message["step"]: message["digest"] for message in calm[rank]}
            found = {message["step"]: message["digest"] for message in again[rank]}
            assert list(found) == list(range(planned.resume_step, STEPS + 1))
            assert found == {step: expected[step] for step in found}


def _plan(job: Job) -> View:
    """What the launchers agree on when node 1 is gone and node 2 is a spare."""
    slots = [Slot(0, 0), Slot(0, 1), Slot(1, 0), Slot(1, 1), Slot(2, 0), Slot(2, 1)]
    before = View(
        generation=job.generation,
        nodes=(0, 0, 0),
        ranks=tuple(RankStatus(slot=slots[rank], rank=rank) for rank in range(WORLD)),
    )
    statuses = [
        Status(node=0, incarnation=0, ranks=tuple(status(job.answers[index], slots[index], index) for index in (0, 1))),
        Status(node=2, incarnation=0, ranks=tuple(status(job.answers[index], slots[index], -1) for index in (4, 5))),
    ]
    view = next_view(before, statuses, policy=Policy(world_size=WORLD))
    assert isinstance(view, View), view
    return view


def say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def program(folder: Path) -> None:
    """One process of the job."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    import torch
    import torch.distributed as dist

    from holdfast_runtime.snapshots import SnapshotError, Snapshots

    torch.set_num_threads(1)
    snapshots = Snapshots(host="127.0.0.1", settle_s=10, transfer_s=10)
    position = {"committed_step": 0}
    while True:
        say({"type": "ready", "port": snapshots.port, "held": snapshots.held(), **position})
        line = sys.stdin.readline()
        if not line:
            break
        try:
            train(folder, json.loads(line), snapshots, position)
        except (RuntimeError, SnapshotError) as error:
            print(f"left: {error}", file=sys.stderr)
        snapshots.leave()
        dist.destroy_process_group()


def train(folder: Path, view: dict[str, Any], snapshots: Any, position: dict[str, int]) -> None:
    """One generation."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    from holdfast_runtime.snapshots import Place, Shard, agree_by

    rank, kill = view["rank"], view.get("kill", {"ranks": []})
    store = dist.FileStore(str(folder / f"generation-{view['generation']}"), WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=timedelta(seconds=8))
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(12, 33), nn.BatchNorm1d(33), nn.Dropout(0.2), nn.Linear(33, 5))
    for layer in (model[0], model[3]):
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    shard = Shard(model, optimizer, {"scheduler": scheduler})
    resume = view["resume_step"]
    places = [Place(*place) for place in view["places"]]
    snapshots.join(shard, rank=rank, places=places, generation=view["generation"], resume_step=resume, agree=agree_by())
    if resume:
        source = snapshots.restore(resume, view["donors"])
        say({"type": "did", "step": resume, "digest": digest(shard), "source": source})
    else:
        torch.manual_seed(100 + rank)
    position["committed_step"] = resume
    snapshots.take(resume)
    for step in range(resume, STEPS):
        dying = rank in kill["ranks"] and step == kill["step"]
        generator = torch.Generator().manual_seed(1000 * step + rank)
        loss = model(torch.randn(6, 12, generator=generator)).square().mean()
        if dying and kill["phase"] == "forward":
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        snapshots.before_update()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        position["committed_step"] = step + 1
        say({"type": "did", "step": step + 1, "digest": digest(shard), "source": "step"})
        if (step + 1) % EVERY == 0:
            snapshots.take(step + 1)
        if dying:
            os.kill(os.getpid(), signal.SIGKILL)


def digest(shard: Any) -> str:
    """Of all tensors of this rank."""
    found = hashlib.sha256()
    for tensor in shard.tensors().values():
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    program(Path(sys.argv[1]))
