"""A random fault every few seconds for a thousand steps: the last step is the calm run's, bit for bit."""

import random
from pathlib import Path

import pytest
from killing import Job, differences, run_job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
STEPS, PAUSE_S, FAULT_EVERY_STEPS = 1000, 0.1, 50
"""A step takes about a tenth of a second, so a fault comes about every five seconds."""
KINDS = ("SIGKILL", "SIGSEGV", "exception", "exit")
PHASES = ("data", "forward", "bucket:0", "bucket:1", "bucket:2", "vote", "update", "commit")


def test_a_thousand_steps_with_a_random_fault_every_five_seconds_end_with_the_calm_digest(tmp_path: Path) -> None:
    generator = random.Random(2026)
    faults = tuple(
        {
            "kind": generator.choice(KINDS),
            "phase": generator.choice(PHASES),
            "rank": generator.randrange(4),
            "step": step + generator.randrange(FAULT_EVERY_STEPS // 2),
        }
        for step in range(10, STEPS - FAULT_EVERY_STEPS, FAULT_EVERY_STEPS)
    )

    calm = run_job(tmp_path / "calm", Job(steps=STEPS))
    outcome = run_job(tmp_path / "soak", Job(steps=STEPS, faults=faults, pause_s=PAUSE_S, timeout_s=500.0))

    assert outcome.finished, outcome.text[-3000:]
    assert len(outcome.fired) == len(faults)
    assert differences(outcome, calm) == []
    assert outcome.steps[STEPS - 1] == calm.steps[STEPS - 1]
