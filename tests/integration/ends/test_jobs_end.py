"""A job that cannot go on ends, within its deadline and with its reason: real processes, one job for each way."""

from pathlib import Path

import pytest
from killing import Job, Outcome, run_job

PROGRAM = Path(__file__).with_name("hopeless_program.py")
KILL = {"kind": "SIGKILL", "phase": "forward", "rank": 1, "step": 2}
REASONS = {
    "all raise": "raised ValueError: every rank raises this (hopeless_program.py:",
    "one raises": "2 processes raised in that step, which was tried 3 times",
    "beyond the vocabulary": "raised IndexError: index out of range in self (hopeless_program.py:",
    "sharded late": "what replaces them, such as fully_shard, has to come before Run",
    "load": "raised RuntimeError: this state cannot be loaded",
    "after every update": "the program itself ended 23 generations within 100 steps, and 22 are allowed; the last",
    "an exit at every step": "the program itself ended 23 generations within 100 steps, and 22 are allowed; the last",
    "connections break": "23 generations in a row ended without a finished step, and 22 are allowed; the last one",
}
QUICK = ("all raise",)
SILENT = ("connections break", "an exit at every step")
"""Nothing of these is an exception."""
STEPS = {"after every update": 50, "an exit at every step": 50}

pytestmark = pytest.mark.timeout(150)


def run(folder: Path, way: str) -> Outcome:
    faults = (KILL,) if way == "load" else ()
    environment = {"HOLDFAST_TEST_WAY": way}
    return run_job(
        folder,
        Job(steps=STEPS.get(way, 8), ranks=2, program=PROGRAM, environment=environment, faults=faults, timeout_s=120.0),
    )


@pytest.mark.parametrize("way", [pytest.param(way, marks=[] if way in QUICK else pytest.mark.e2e) for way in REASONS])
def test_a_job_ends_with_the_reason_of(way: str, tmp_path: Path) -> None:
    outcome = run(tmp_path, way)

    last = [line for line in outcome.text.splitlines() if "the job ends: " in line]
    assert outcome.codes == (1,), outcome.text[-3000:]
    assert len(last) == 1
    assert REASONS[way] in last[0]
    assert way in SILENT or "Traceback (most recent call last)" in outcome.text


@pytest.mark.e2e
def test_an_exception_after_the_update_costs_its_process_and_not_the_job(tmp_path: Path) -> None:
    outcome = run(tmp_path, "after the update")

    assert outcome.finished, outcome.text[-3000:]
    assert "rank 1 of node 0 raised OSError: the script's log cannot be written" in outcome.text
