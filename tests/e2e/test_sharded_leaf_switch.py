"""A leaf switch of two of six nodes is lost under a sharded job, with and without Slurm's topology."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import Outcome, differences, run_job
from sharded_jobs import sharded

from holdfast_common.placement import Spot, keepers, survival
from holdfast_runtime.launcher.node import ask

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
STEPS, STRUCK_AFTER = 14, 6
NODES = 6
LEAVES = ("nn-a", "nn-a", "nn-b", "nn-b", "nn-c", "nn-c")
"""Of nodes with a rank and a spare each."""
LOST = (4, 5)
TIMEOUT_S = 900.0


def predicted(leaves: tuple[str, ...]) -> tuple[str, set[int]]:
    """Losses that the placement tolerates, and the ranks whose state the loss of both nodes takes."""
    spots = [Spot(rank, leaves[rank] if leaves else "") for rank in range(NODES)]
    kept = keepers(spots)
    return str(survival(spots, kept=kept)), {rank for rank in LOST if kept.of[rank] in LOST}


def lose_the_leaf(folder: Path) -> Callable[[], bool]:
    """For ``Job.until``: kills both launchers, and with each its node's processes, after some steps."""
    pids: list[int] = []

    def look() -> bool:
        written = folder / "rank0.jsonl"
        if not pids and written.exists() and written.read_bytes().count(b"\n") >= STRUCK_AFTER:
            for node in LOST:
                status = ask(folder / f"{node}.sock")
                assert [one["rank"] for one in status["processes"] if one["rank"] >= 0] == [node]
                pids.append(_parent(status["forker"]))
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        return False

    return look


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def run(folder: Path, leaves: tuple[str, ...]) -> Outcome:
    job = sharded(
        f"shard{NODES}",
        steps=STEPS,
        every=2,
        nodes=NODES,
        pause_s=0.3,
        leaves=leaves,
        until=lose_the_leaf(folder),
        restart_launchers=False,
        timeout_s=TIMEOUT_S,
    )
    outcome = run_job(folder, job)
    assert [outcome.codes[node] for node in LOST] == [-signal.SIGKILL] * len(LOST)
    return outcome


def test_with_the_topology_every_copy_of_a_lost_leaf_survives_as_predicted(tmp_path: Path) -> None:
    sentence, without_copy = predicted(LEAVES)
    assert (sentence, without_copy) == ("any one rack may be lost", set())
    calm = run_job(tmp_path / "calm", sharded(f"shard{NODES}", steps=STEPS, spares=0, timeout_s=TIMEOUT_S))
    assert calm.finished, calm.text[-3000:]

    outcome = run(tmp_path / "lost", LEAVES)

    assert f"state in memory: {sentence}" in outcome.text
    assert {code for node, code in enumerate(outcome.codes) if node not in LOST} == {0}, outcome.text[-3000:]
    assert differences(outcome, calm) == []


def test_without_the_topology_both_copies_are_below_the_lost_leaf_as_predicted(tmp_path: Path) -> None:
    sentence, without_copy = predicted(())
    assert (sentence, without_copy) == ("any one node may be lost", set(LOST))

    outcome = run(tmp_path, ())

    assert f"state in memory: {sentence}" in outcome.text
    assert "ranks 4, 5 are lost, and no process has the state of ranks 4, 5" in outcome.text
    assert {code for node, code in enumerate(outcome.codes) if node not in LOST} == {1}
