"""A random fault every few seconds for five hundred steps of a sharded job: it ends as the calm run, bit for bit."""

import random
from pathlib import Path
from typing import Any

import pytest
from killing import PATIENT, differences, run_job
from sharded_jobs import sharded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]
STEPS, PAUSE_S, FAULT_EVERY_STEPS = 500, 0.2, 20
"""A step takes at least a fifth of a second, so a fault comes about every five seconds."""
KINDS = ("SIGKILL", "SIGSEGV", "exception", "exit")
COLLECTIVES = {"replicate2 shard2": 17, "shard4": 13}
"""Of forward and backward."""


@pytest.mark.parametrize(("layout", "every"), [("replicate2 shard2", None), ("shard4", 2)])
def test_five_hundred_steps_with_a_random_fault_every_five_seconds_end_with_the_calm_digest(
    layout: str, every: int | None, tmp_path: Path
) -> None:
    generator = random.Random(2026)
    collectives = tuple(f"collective:{number}" for number in range(COLLECTIVES[layout]))
    faults: tuple[dict[str, Any], ...] = tuple(
        {
            "kind": generator.choice(KINDS),
            "phase": generator.choice(("data", *collectives, "vote", "update", "commit")),
            "rank": generator.randrange(4),
            "step": step + generator.randrange(FAULT_EVERY_STEPS // 2),
        }
        for step in range(10, STEPS - FAULT_EVERY_STEPS, FAULT_EVERY_STEPS)
    )

    calm = run_job(tmp_path / "calm", sharded(layout, steps=STEPS, spares=0, deadlines=PATIENT))
    job = sharded(layout, steps=STEPS, every=every, spares=2, faults=faults, pause_s=PAUSE_S, timeout_s=1200.0)
    outcome = run_job(tmp_path / "soak", job)

    assert outcome.finished, outcome.text[-3000:]
    assert len(outcome.fired) == len(faults)
    # A step that all ranks finish while they recover is done, and none of them writes it down.
    assert differences(outcome, calm, unseen=True) == []
    assert outcome.steps[STEPS - 1] == calm.steps[STEPS - 1]
