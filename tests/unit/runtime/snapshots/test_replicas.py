"""Checkpoints of jobs whose ranks are all the same: asynchronous, verified, and no harm when they fail."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from holdfast_runtime.snapshots import ReplicaCheckpoints, complete_steps  # noqa: E402


def tree(value: float, size: int = 10) -> dict[str, Any]:
    return {"model": {"weight": torch.full((size,), value)}, "optimizer": {"state": {0: {"step": value}}}, "added": []}


def save(checkpoints: ReplicaCheckpoints, step: int, state: dict[str, Any]) -> str:
    checkpoints.save(step, state, rank=0, world_size=4)
    outcome = checkpoints.wait()
    assert outcome is not None
    assert outcome.step == step
    return outcome.problem


def test_the_state_of_the_moment_is_saved_and_any_rank_reads_it(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path / "new", keep=2)
    assert checkpoints.newest_step() == -1
    state = tree(1.0)
    checkpoints.save(1, state, rank=0, world_size=4)
    state["model"]["weight"].fill_(9.0)
    checkpoints.wait()
    for step in (2, 3):
        assert save(checkpoints, step, tree(float(step))) == ""
    assert complete_steps(tmp_path / "new") == [2, 3]
    loaded = ReplicaCheckpoints(tmp_path / "new").load(3, rank=2)
    assert torch.equal(loaded["model"]["weight"], torch.full((10,), 3.0))
    assert loaded["optimizer"] == {"state": {0: {"step": 3.0}}}


def test_what_was_saved_is_not_what_training_made_of_it_later(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    state = tree(1.0, size=1_000_000)
    checkpoints.save(1, state, rank=0, world_size=1)
    state["model"]["weight"].fill_(9.0)
    checkpoints.wait()
    assert float(checkpoints.load(1, rank=0)["model"]["weight"].max()) == 1.0


def test_arrays_are_saved_as_they_were_and_read_as_arrays(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    array = np.arange(6.0).reshape(2, 3)
    checkpoints.save(1, {"state": {"counts": [array, np.float32(0.5), (1, 2)]}}, rank=0, world_size=1)
    array += 9

    assert checkpoints.wait() is not None
    counts, number, pair = checkpoints.load(1, rank=0)["state"]["counts"]
    assert isinstance(counts, np.ndarray)
    assert (counts.tolist(), number, pair) == ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 0.5, (1, 2))


def test_only_the_first_rank_writes_and_each_step_once(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    checkpoints.save(1, tree(1.0), rank=1, world_size=4)
    assert checkpoints.wait() is None
    assert save(checkpoints, 1, tree(1.0)) == ""
    checkpoints.save(1, tree(2.0), rank=0, world_size=4)
    ReplicaCheckpoints(tmp_path).save(1, tree(2.0), rank=0, world_size=4)
    assert float(checkpoints.load(1, rank=0)["model"]["weight"][0]) == 1.0


def test_when_storage_is_slow_the_newest_is_written_and_those_between_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path, keep=9)
    go = threading.Event()
    write = checkpoints._write

    def slow(*work: Any) -> None:
        assert go.wait(10)
        write(*work)

    monkeypatch.setattr(checkpoints, "_write", slow)
    checkpoints.save(1, tree(1.0), rank=0, world_size=1)
    while checkpoints._next is not None:
        threading.Event().wait(0.001)
    for step in (2, 3, 4):
        checkpoints.save(step, tree(float(step)), rank=0, world_size=1)
    go.set()
    checkpoints.wait()
    assert complete_steps(tmp_path) == [1, 4]


def test_a_damaged_or_missing_one_is_refused(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    save(checkpoints, 1, tree(1.0))
    (path,) = tmp_path.rglob("state.pt")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"is damaged: state\.pt does not match its SHA-256"):
        checkpoints.load(1, rank=0)
    with pytest.raises(ValueError, match=r"no complete checkpoint of step 2 in .*; complete are: 1"):
        checkpoints.load(2, rank=0)


def test_state_that_could_not_be_read_again_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    problem = save(checkpoints, 1, {"added": np.random.default_rng()})
    assert "the checkpoint of step 1 was not written" in problem
    assert complete_steps(tmp_path) == []


@pytest.mark.root
def test_a_full_disk_costs_the_checkpoint_and_not_the_training(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(tmp_path)], check=True, timeout=10)
    try:
        checkpoints = ReplicaCheckpoints(tmp_path)
        assert save(checkpoints, 1, tree(1.0)) == ""
        problem = save(checkpoints, 2, tree(1.0, size=1_000_000))
        assert "the checkpoint of step 2 was not written" in problem
        assert "training goes on, and the newest complete one is of step 1" in problem
        assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True, timeout=10)
