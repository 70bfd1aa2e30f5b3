"""A rank is lost before the first step: nothing is trained yet, so all begin again; no message blames the program."""

import importlib.util
from pathlib import Path

import pytest
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job
from sharded_jobs import PRELOADED

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(300),
]
PROGRAM = ROOT / "tests" / "integration" / "making_program.py"


def run(folder: Path, struck: str = "") -> Outcome:
    return run_job(
        folder,
        Job(
            steps=4,
            ranks=4,
            spares=0,
            program=PROGRAM,
            torch=PRELOADED,
            deadlines=PATIENT,
            environment={"STRUCK": struck},
            timeout_s=60,
        ),
    )


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    found = run(tmp_path_factory.mktemp("calm") / "job")
    assert found.finished, found.text[-3000:]
    return found


@pytest.mark.parametrize(
    "struck",
    [
        pytest.param("before the mesh", marks=pytest.mark.e2e),
        pytest.param("behind the mesh", marks=pytest.mark.e2e),
        pytest.param("behind the model", marks=pytest.mark.e2e),
        "before the loop",
    ],
)
def test_a_rank_lost_before_the_first_step_has_all_begin_again(tmp_path: Path, calm: Outcome, struck: str) -> None:
    outcome = run(tmp_path / "job", struck)

    assert (tmp_path / "job" / "struck").exists()
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert "Traceback" not in outcome.text
    assert "raised" not in outcome.text


def test_a_rank_that_has_its_model_waits_in_its_groups_for_those_that_have_none_yet(
    tmp_path: Path, calm: Outcome
) -> None:
    outcome = run(tmp_path / "job", "late")

    assert (tmp_path / "job" / "struck").exists()
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert "generation 3" not in outcome.text
