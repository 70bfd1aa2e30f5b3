"""A state that somebody gives who does not know the run's token, in a real recovery: it is not trained on."""

from pathlib import Path

import pytest
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job

BROKEN = ROOT / "tests" / "support" / "broken_program.py"
LOST = {"kind": "SIGKILL", "phase": "bucket:1", "rank": 2, "step": 4}
STEPS = 8

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def run(folder: Path, what: str) -> Outcome:
    environment = {"HOLDFAST_TEST_BREAK": what}
    job = Job(steps=STEPS, program=BROKEN, faults=(LOST,), environment=environment, deadlines=PATIENT)
    return run_job(folder, job)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(tmp_path_factory.mktemp("calm"), Job(steps=STEPS, spares=0))
    assert outcome.finished, outcome.text[-3000:]
    return outcome


def test_a_state_of_who_does_not_know_the_token_is_refused_and_another_donor_asked(
    tmp_path: Path, calm: Outcome
) -> None:
    outcome = run(tmp_path, "stranger")

    assert outcome.fired == {0: 1, 1: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert "different at step" not in outcome.text


def test_without_the_donors_proof_it_would_be_taken(tmp_path: Path, calm: Outcome) -> None:
    outcome = run(tmp_path, "stranger,no-proof,no-digest")

    assert outcome.fired == {0: 1, 1: 1}
    assert differences(outcome, calm) != [] or not outcome.finished
