"""A random fault every few seconds and another size every fifty steps: an elastic job ends as the calm one."""

import random
from pathlib import Path
from typing import Any

import pytest
from elastic_jobs import asking, elastic, written, wrong
from killing import run_job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(2400)]
STEPS, PAUSE_S, FAULT_EVERY_STEPS, CHANGE_EVERY_STEPS = 500, 0.2, 25, 50
"""A step takes at least a fifth of a second, so a fault comes about every five seconds."""
SIZES = (3, 2, 4)
KINDS = ("SIGKILL", "SIGSEGV", "exception", "exit")
PHASES = ("part", "vote", "update", "commit", "data")


def test_five_hundred_steps_with_faults_and_changes_of_size_end_with_the_calm_digest(tmp_path: Path) -> None:
    generator = random.Random(2026)
    faults: tuple[dict[str, Any], ...] = tuple(
        {
            "kind": generator.choice(KINDS),
            "phase": generator.choice(PHASES),
            "rank": generator.randrange(min(SIZES)),  # ranks that there are at any size
            "step": step + generator.randrange(FAULT_EVERY_STEPS // 2),
        }
        for step in range(10, STEPS - FAULT_EVERY_STEPS, FAULT_EVERY_STEPS)
    )
    plan = [
        (step, SIZES[number % len(SIZES)])
        for number, step in enumerate(range(CHANGE_EVERY_STEPS, STEPS - CHANGE_EVERY_STEPS, CHANGE_EVERY_STEPS))
    ]
    folder, calm = tmp_path / "soak", tmp_path / "calm"
    job = elastic(
        sizes="2,3,4",
        steps=STEPS,
        every=2,
        pause_s=PAUSE_S,
        faults=faults,
        until=asking(folder, plan),
        timeout_s=1500.0,
    )

    outcome = run_job(folder, job)

    assert outcome.finished, outcome.text[-3000:]
    assert len(outcome.fired) == len(faults)
    assert run_job(calm, elastic(sizes="", steps=STEPS, timeout_s=600.0)).finished
    assert wrong(folder, calm, steps=STEPS) == []
    sizes = {step: found[-1].size for step, found in written(folder).items()}
    assert [sizes[step + CHANGE_EVERY_STEPS - 1] for step, _ in plan] == [size for _, size in plan]
