"""A rank that is refused its state by all who have it ends the job after a few tries, and not after a whole budget."""

import importlib.util
from pathlib import Path

import pytest
from killing import run_job
from sharded_jobs import sharded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(300),
]
LOST = {"kind": "SIGKILL", "phase": "collective:3", "rank": 1, "step": 5}
DAMAGED = {"kind": "corrupt", "phase": "hand-out", "step": 5, "back": 4}


def test_a_snapshot_that_always_arrives_damaged_ends_the_job_after_three_generations(tmp_path: Path) -> None:
    job = sharded("shard2", steps=9, every=2, spares=2, faults=(LOST, {**DAMAGED, "times": 50}))

    outcome = run_job(tmp_path, job)

    last = [line for line in outcome.text.splitlines() if "the job ends: " in line]
    assert outcome.codes == (1,), outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 3}
    assert "arrived damaged" in last[0]
    assert "3 generations of the same processes failed so: trying again does not help" in last[0]


def test_a_snapshot_that_arrives_damaged_twice_is_taken_at_the_third_try(tmp_path: Path) -> None:
    job = sharded("shard2", steps=9, every=2, spares=2, faults=(LOST, {**DAMAGED, "times": 2}))

    outcome = run_job(tmp_path, job)

    assert outcome.fired == {0: 1, 1: 2}
    assert outcome.finished, outcome.text[-3000:]
