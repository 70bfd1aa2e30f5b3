"""
A rank of a sharded job is killed, and the job goes on in place with every bit of a calm run.

One layout that goes back to snapshots and one with twins, with one death in a collective of backward, one in the
update and one in a validation after it; all layouts are in tests/e2e/test_sharded_matrix.py.
"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from killing import differences, run_job
from sharded_jobs import sharded

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(600),
]
STEPS = 10
KILLS = (
    {"kind": "SIGKILL", "phase": "collective:3", "rank": 1, "step": 4},
    {"kind": "SIGKILL", "phase": "update", "rank": 0, "step": 7},
)
VALIDATION = {"kind": "SIGKILL", "phase": "validation:1", "rank": 1, "step": 1}


@pytest.mark.parametrize(
    ("layout", "every", "kills"),
    [("shard2", 2, (VALIDATION, *KILLS)), pytest.param("pp2 replicate2", None, KILLS, marks=pytest.mark.e2e)],
)
def test_a_killed_rank_is_made_anew_and_every_bit_is_that_of_a_calm_run(
    tmp_path: Path, layout: str, every: int | None, kills: tuple[dict[str, Any], ...]
) -> None:
    calm = run_job(tmp_path / "calm", sharded(layout, steps=STEPS, spares=0))

    faulty = sharded(
        layout, steps=STEPS, every=every, faults=kills, environment={"VALIDATES": "yes" if VALIDATION in kills else ""}
    )
    outcome = run_job(tmp_path / "faults", faulty)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == dict.fromkeys(range(len(kills)), 1)
    assert differences(outcome, calm) == []
    if not every:
        assert "committed steps are done again" not in outcome.text, "a twin has the running step"


def test_a_pass_without_a_backward_before_the_update_costs_no_bit(tmp_path: Path) -> None:
    calm = run_job(tmp_path / "calm", sharded("shard2", steps=4, spares=0))
    looks = run_job(tmp_path / "looks", sharded("shard2", steps=4, spares=0, environment={"LOOKS": "yes"}))

    assert looks.finished, looks.text[-3000:]
    assert differences(looks, calm) == []


@pytest.mark.parametrize(
    ("step", "named"),
    [
        pytest.param(6, "", id="behind the snapshot at the start of a loop"),
        pytest.param(4, "this process has left the loop that ended with step 4", id="before it"),
    ],
)
def test_a_job_never_goes_back_into_a_loop_that_has_ended(tmp_path: Path, step: int, named: str) -> None:
    epochs = {"EPOCH": "4"}
    phase = "collective:3" if step == 6 else "pause"
    lost = {"kind": "SIGKILL", "phase": phase, "rank": 1, "step": step}

    calm = run_job(tmp_path / "calm", sharded("shard2", steps=8, spares=0, every=3, environment=epochs))
    outcome = run_job(tmp_path / "lost", sharded("shard2", steps=8, every=3, faults=(lost,), environment=epochs))

    assert outcome.fired == {0: 1}
    assert outcome.codes == ((1,) if named else (0,)), outcome.text[-3000:]
    assert named in outcome.text
    assert differences(outcome, calm) == [] or named
