"""
A rank of a sharded job is killed, and the job goes on in place with every bit of a calm run.

One layout that goes back to snapshots and one with twins, with one death in a collective of backward and one in the
update; all layouts are in tests/e2e/test_sharded_matrix.py.
"""

import importlib.util
from pathlib import Path

import pytest
from killing import differences, run_job
from sharded_jobs import sharded

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(600),
]
STEPS = 9
KILLS = (
    {"kind": "SIGKILL", "phase": "collective:3", "rank": 1, "step": 3},
    {"kind": "SIGKILL", "phase": "update", "rank": 0, "step": 6},
)


@pytest.mark.parametrize(
    ("layout", "every"),
    [("shard2", 2), pytest.param("pp2 replicate2", None, marks=pytest.mark.e2e)],
)
def test_a_killed_rank_is_made_anew_and_every_bit_is_that_of_a_calm_run(
    tmp_path: Path, layout: str, every: int | None
) -> None:
    calm = run_job(tmp_path / "calm", sharded(layout, steps=STEPS, spares=0))

    outcome = run_job(tmp_path / "faults", sharded(layout, steps=STEPS, every=every, faults=KILLS))

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert differences(outcome, calm) == []
    if not every:
        assert "committed steps are done again" not in outcome.text, "a twin has the running step"
