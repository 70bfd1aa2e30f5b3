"""The last message of a sharded job whose state is lost: ranks, checkpoint, the option that accepts it, the end."""

import importlib.util
import re
from pathlib import Path

import pytest
from killing import Outcome, run_job
from sharded_jobs import sharded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(300),
]
LATE_END = Path(__file__).with_name("late_end_program.py")


def last_words(outcome: Outcome) -> str:
    assert outcome.codes == (1,), outcome.text[-3000:]
    [last] = [line for line in outcome.text.splitlines() if "the job ends: " in line]
    return last


def test_two_ranks_lost_after_the_last_update_are_named_and_all_steps_are_said_to_be_done(tmp_path: Path) -> None:
    outcome = run_job(tmp_path, sharded("shard4", steps=5, every=2, spares=2, program=LATE_END))

    last = last_words(outcome)
    assert "all 5 steps are done, only the end was not reached" in last
    assert "no process has the state of ranks 0, 1" in last


@pytest.mark.e2e
def test_the_newest_checkpoint_and_the_option_that_accepts_going_back_to_it_are_named(tmp_path: Path) -> None:
    both = {"kind": "SIGKILL", "phase": "vote", "rank": 0, "step": 7, "victims": ["rank:1", "self"]}
    job = sharded("shard2", steps=12, spares=2, faults=(both,), pause_s=0.3, environment={"CHECKPOINT_EVERY": "3"})

    last = last_words(run_job(tmp_path, job))

    assert "no process has the state of ranks 0, 1" in last or "ranks 0, 1 are lost" in last
    step = re.search(r"the newest complete checkpoint is of step (\d+); --allow-loss (\d+) accepts going back", last)
    assert step is not None, last
    assert int(step[1]) + int(step[2]) in (7, 8), "rank 1 may have committed the step before it was killed"
