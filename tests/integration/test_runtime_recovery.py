"""
A part of the kill matrix that is quick, and what happens when a safeguard is taken out.

The whole matrix is in tests/e2e/test_kill_matrix.py. Each test proves that its faults have fired.
"""

import re
from pathlib import Path

import kill_matrix as matrix
import pytest
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job

BROKEN = ROOT / "tests" / "support" / "broken_program.py"
STEPS = 14
COPY = (
    {"kind": "SIGKILL", "phase": "bucket:1", "rank": 2, "step": 4},
    {"kind": "corrupt", "phase": "copy-out", "step": 4},
)

pytestmark = pytest.mark.timeout(600)


def some_cases() -> tuple[matrix.Case, ...]:
    """One of each kind, phase and victim, and not their product."""
    deaths = {case.name: case for case in matrix.deaths()}
    chosen = [
        deaths[f"{matrix.ENDS[number % 4]} in {phase} at rank {number % 4}"]
        for number, phase in enumerate(matrix.PHASES)
    ]
    chosen += [
        deaths[f"SIGKILL in {phase} at rank {rank}"] for phase, rank in (("data", 3), ("vote", 0), ("update", 2))
    ]
    chosen += [deaths[f"exception in {phase} at rank 1"] for phase in ("forward", "bucket:2", "update")]
    chosen += list(matrix.hangs())[4:5]
    chosen += list(matrix.pairs())[1:16:7]
    chosen += list(matrix.spares())[1:4:2]
    chosen += list(matrix.during_recovery())[0:16:5]
    chosen += list(matrix.during_copy())[0:20:3]
    return tuple(chosen)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(tmp_path_factory.mktemp("calm"), Job(steps=STEPS, spares=0))
    assert outcome.finished, outcome.text[-3000:]
    return outcome


def broken(folder: Path, what: str, *, faults: tuple[matrix.Spec, ...] = (), until_step: int = 0) -> Outcome:
    environment = {"HOLDFAST_TEST_BREAK": what}
    return run_job(
        folder,
        Job(
            steps=STEPS,
            program=BROKEN,
            faults=faults,
            environment=environment,
            until_step=until_step,
            deadlines=PATIENT,
        ),
    )


@pytest.mark.e2e
def test_training_goes_on_bit_for_bit_after_some_of_every_fault(tmp_path: Path) -> None:
    cases = some_cases()
    plan = matrix.plan(cases, spacing=4)
    shape = {"steps": plan.steps, "pause_s": 0.02, "deadlines": f"{PATIENT},frozen=1"}
    still = run_job(tmp_path / "calm", Job(steps=plan.steps, spares=0))

    outcome = run_job(
        tmp_path / "faults",
        Job(faults=plan.faults, arguments=("--max-restarts", "40"), **shape),  # type: ignore[arg-type]
    )

    missed = [placed.case.name for placed in plan.cases if not all(n in outcome.fired for n in placed.faults)]
    assert len(cases) >= 25
    assert missed == [], "these did not happen, so nothing was tested"
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, still) == []


def test_samples_of_committed_updates_have_no_gap_and_no_repeat(tmp_path: Path) -> None:
    faults = ({"kind": "SIGKILL", "phase": "vote", "rank": 1, "step": 3},)

    outcome = run_job(tmp_path, Job(steps=6, faults=faults))

    assert outcome.fired == {0: 1}
    wanted = [100 * step + rank for step in range(6) for rank in range(4)]
    assert [(tmp_path / f"done{rank}").read_text() for rank in range(4)] == [str(wanted)] * 4


@pytest.mark.e2e
def test_a_step_whose_only_finisher_dies_before_the_others_have_its_sums_is_done_again_bit_for_bit(
    tmp_path: Path, calm: Outcome
) -> None:
    outcome = broken(tmp_path, "late", faults=({"kind": "SIGKILL", "phase": "commit", "rank": 1, "step": 5},))

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert "step 5, 1 committed steps are done again" in outcome.text
    assert differences(outcome, calm) == []


def test_replicas_that_differ_by_one_bit_end_the_job(tmp_path: Path) -> None:
    outcome = broken(tmp_path, "flip")

    assert outcome.codes == (1,)
    assert re.search(r"the parameters of the ranks are different: 0.weight is .* at step 6", outcome.text)
    assert max(outcome.steps) == 5


@pytest.mark.e2e
def test_without_the_digest_replicas_that_differ_would_train_on(tmp_path: Path, calm: Outcome) -> None:
    outcome = broken(tmp_path, "flip,no-digest")

    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) != []


@pytest.mark.e2e
def test_ranks_that_are_at_different_steps_end_the_job(tmp_path: Path) -> None:
    outcome = broken(tmp_path, "ahead")

    assert outcome.codes == (1,)
    assert "ranks are at different steps" in outcome.text
    assert max(outcome.steps) == 4


@pytest.mark.e2e
def test_without_the_vote_ranks_at_different_steps_are_noticed_only_after_an_update(tmp_path: Path) -> None:
    outcome = broken(tmp_path, "ahead,no-vote", until_step=5)

    assert outcome.codes == (1,)
    assert "ranks are at different steps" not in outcome.text
    assert re.search(r"the parameters of the ranks are different, at step [56]", outcome.text)


def test_a_wrong_byte_in_a_copy_changes_nothing(tmp_path: Path, calm: Outcome) -> None:
    outcome = broken(tmp_path, "", faults=COPY)

    assert outcome.fired == {0: 1, 1: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []


@pytest.mark.e2e
def test_without_checksum_and_digest_a_wrong_byte_would_be_trained_on(tmp_path: Path, calm: Outcome) -> None:
    outcome = broken(tmp_path, "no-checksum,no-digest", faults=COPY)

    assert outcome.fired == {0: 1, 1: 1}
    assert differences(outcome, calm) != [] or not outcome.finished
