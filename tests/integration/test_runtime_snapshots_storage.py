"""
Checkpoints of a fully sharded job (FSDP2, gloo) in real storage: asynchronous, verified, atomic, and a full disk.

Run as a program, this file is one rank: it says on standard output what it found, and the test judges.
"""

import ctypes
import hashlib
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from warm import warm

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")]
WORLD = 2


class Run(Protocol):
    """Runs a scenario on real ranks; what each of them says at its end."""

    def __call__(
        self, tmp_path: Path, storage: Path, scenario: str, *, world: int = WORLD, codes: tuple[int, ...] = ()
    ) -> list[dict[str, Any]]: ...


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with warm("pytest", "torch._dynamo", "torch.distributed.fsdp", "holdfast_runtime.snapshots",
              environment=environment) as ready:  # fmt: skip

        def run(
            tmp_path: Path, storage: Path, scenario: str, *, world: int = WORLD, codes: tuple[int, ...] = ()
        ) -> list[dict[str, Any]]:
            (tmp_path / "rendezvous").unlink(missing_ok=True)
            with ExitStack() as stack:
                ranks = [
                    stack.enter_context(
                        ready.program(__file__, str(tmp_path), str(storage), scenario, str(rank), str(world))
                    )
                    for rank in range(world)
                ]
                said = [rank.communicate() for rank in ranks]
                assert [rank.returncode for rank in ranks] == list(codes or (0,) * world)
            return [json.loads(text.splitlines()[-1]) for text in said if text]

        yield run


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    return tmp_path / "storage"


def test_the_state_of_the_moment_is_written_while_training_goes_on_and_read_bit_for_bit(
    tmp_path: Path, storage: Path, run: Run
) -> None:
    saved = run(tmp_path, storage, "save")
    assert [answer["steps"] for answer in saved] == [[4, 6]] * WORLD, "two are kept"
    assert [answer["problems"] for answer in saved] == [[""] * 3] * WORLD
    assert [answer["again"] for answer in saved] == [[False] * 3] * WORLD, "one at a time, and each step once"
    loaded = run(tmp_path, storage, "load")
    assert [answer["step"] for answer in loaded] == [6] * WORLD
    for before, after in zip(saved, loaded, strict=True):
        assert after["loaded"] == before["digests"]["6"]
        assert after["digests"] == {"7": before["digests"]["7"]}
    fewer = run(tmp_path, storage, "load", world=1)
    assert fewer[0]["whole"] == loaded[0]["whole"], "shards are cut anew for another number of ranks"


def test_what_was_never_completed_is_ignored_and_cleared(tmp_path: Path, storage: Path, run: Run) -> None:
    run(tmp_path, storage, "save")
    newest = storage / "step-000000006"
    (newest / "COMPLETE").unlink()
    from holdfast_runtime.snapshots import newest_complete

    assert newest_complete(storage) == 4
    assert [answer["step"] for answer in run(tmp_path, storage, "load")] == [4] * WORLD
    assert not newest.exists()


def test_a_rank_that_is_killed_while_it_writes_leaves_no_checkpoint_and_the_one_before(
    tmp_path: Path, storage: Path, run: Run
) -> None:
    (survivor,) = run(tmp_path, storage, "kill", codes=(0, -signal.SIGKILL))
    assert survivor["steps"] == [2]
    assert survivor["problems"][0] == ""
    assert "the checkpoint of step 4 was not written" in survivor["problems"][1]
    assert [answer["step"] for answer in run(tmp_path, storage, "load")] == [2] * WORLD
    assert [path.name for path in storage.iterdir()] == ["step-000000002"]


def test_a_changed_byte_is_refused_on_all_ranks(tmp_path: Path, storage: Path, run: Run) -> None:
    run(tmp_path, storage, "save")
    victim = storage / "step-000000006" / "__1_0.distcp"
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    for answer in run(tmp_path, storage, "load"):
        assert "step 6" in answer["refused"]
        assert "__1_0.distcp does not match its SHA-256; other complete ones: 4" in answer["refused"]


@pytest.mark.root
def test_a_full_disk_costs_the_checkpoint_and_not_the_training(tmp_path: Path, storage: Path, run: Run) -> None:
    storage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(storage)], check=True, timeout=10)
    try:
        answers = run(tmp_path, storage, "fill")
        for answer in answers:
            assert answer["steps"] == [2], "the checkpoint before stays"
            assert answer["problems"][0] == ""
            for step, problem in zip((4, 6, 8), answer["problems"][1:], strict=True):
                assert f"the checkpoint of step {step} was not written" in problem
                assert "bytes were free); training goes on, and the newest complete one is of step 2" in problem
            assert answer["trained"] == 8
        assert [path.name for path in storage.iterdir() if path.name.startswith("step-")] == ["step-000000002"]
    finally:
        subprocess.run(["umount", "--lazy", str(storage)], check=True, timeout=10)


def program(tmp_path: Path, storage: Path, scenario: str, rank: int, world: int) -> dict[str, Any]:
    """One rank."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    from holdfast_runtime.snapshots import Checkpoints, Shard, SnapshotError, agree_by, complete_steps

    logging.basicConfig(level=logging.INFO)
    torch.set_num_threads(1)
    store = dist.FileStore(str(tmp_path / "rendezvous"), world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=30))
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(32, 48), nn.BatchNorm1d(48), nn.Dropout(0.2), nn.Linear(48, 5))
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    shard = Shard(model, optimizer, {"scheduler": scheduler})
    checkpoints = Checkpoints(storage, keep=2, deadline_s=60)
    checkpoints.join(shard, group=dist.new_group(backend="gloo"), agree=agree_by())
    torch.manual_seed(rank if scenario != "load" else 77)
    digests: dict[int, str] = {}
    answer: dict[str, Any] = {"digests": digests}

    def train(step: int) -> None:
        generator = torch.Generator().manual_seed(1000 * step + rank)
        model(torch.randn(6, 32, generator=generator)).square().mean().backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        digests[step + 1] = digest(shard)

    if scenario == "load":
        try:
            answer["step"] = checkpoints.load()
        except SnapshotError as error:
            answer["refused"] = str(error)
        else:
            answer["loaded"] = digest(shard)
            answer["whole"] = [
                parameter.full_tensor().detach().double().sum().item() for parameter in model.parameters()
            ]
            train(answer["step"])
    elif scenario == "kill":
        problems = [_saved(checkpoints, train, step=2, die=False), _saved(checkpoints, train, step=4, die=rank == 1)]
        return {"problems": problems, "steps": complete_steps(storage)}
    else:
        answer.update(_save(checkpoints, train, ballast=storage / "ballast" if scenario == "fill" else None, rank=rank))
        answer["steps"] = complete_steps(storage)
        answer["trained"] = len(digests)
    dist.barrier()
    dist.destroy_process_group()
    return answer


def _saved(checkpoints: Any, train: Callable[[int], None], *, step: int, die: bool) -> str:
    """The problem of a checkpoint that is begun after a step, and during which a rank may die."""
    train(step - 1)
    assert checkpoints.save(step)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    problem: str = checkpoints.wait().problem
    return problem


def _save(checkpoints: Any, train: Callable[[int], None], *, ballast: Path | None, rank: int) -> dict[str, Any]:
    """A checkpoint after every second step, written while the next step changes the state."""
    again = []
    problems = []
    for step in range(8 if ballast else 7):
        train(step)
        if step % 2:
            if outcome := checkpoints.wait():
                problems.append(outcome.problem)
                if ballast and rank == 0 and not ballast.exists():
                    _fill_up(ballast)
            assert checkpoints.save(step + 1)
            again.append(checkpoints.save(step + 1))
    problems.append(checkpoints.wait().problem)
    return {"again": again, "problems": problems}


def _fill_up(path: Path) -> None:
    """Leave no room in the file system."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return


def digest(shard: Any) -> str:
    """Of all tensors of this rank."""
    found = hashlib.sha256()
    for tensor in shard.tensors().values():
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps(program(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
