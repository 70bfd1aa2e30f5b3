"""A training with Lightning goes on bit for bit when ranks die: parameters, batches, clipping and schedule."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from killing import Job, Outcome, differences, run_job

pytestmark = pytest.mark.e2e

if importlib.util.find_spec("pytorch_lightning") is None:
    pytest.skip("needs pytorch_lightning", allow_module_level=True)

STEPS = 18
"""Each rank has 7 batches in an epoch, so that there are two and a half."""
SHAPE: dict[str, Any] = {
    "program": Path(__file__).with_name("lightning_program.py"),
    "torch": "torch._dynamo,pytorch_lightning",
    "ranks": 2,
    "steps": STEPS,
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_job(tmp_path_factory.mktemp("calm"), Job(**SHAPE))


def test_each_rank_has_its_own_part_of_the_data_and_the_same_parameters(calm: Outcome) -> None:
    assert calm.finished, calm.text[-3000:]
    assert sorted(calm.steps) == list(range(1, STEPS + 1))


def test_faults_in_the_midst_of_fit_cost_no_bit(calm: Outcome, tmp_path: Path) -> None:
    faults = [
        {"kind": kind, "phase": phase, "rank": rank, "step": step}
        for kind, phase, rank, step in (
            ("SIGKILL", "bucket:0", 1, 3),
            ("exception", "update", 1, 5),
            ("SIGKILL", "bucket:0", 0, 8),
            ("SIGKILL", "commit", 0, 11),
            ("SIGKILL", "data", 1, 14),
        )
    ]

    outcome = run_job(tmp_path, Job(faults=tuple(faults), arguments=("--max-restarts", "20"), **SHAPE))

    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == dict.fromkeys(range(len(faults)), 1)
    assert differences(outcome, calm) == []


def test_batches_that_one_step_accumulates_are_all_done_again(tmp_path: Path) -> None:
    """Epochs of 7 batches have two steps of three batches, and one of the last batch."""
    shape = SHAPE | {"steps": 8, "environment": {"ACCUMULATE": "3", "DIE": "1"}}
    faults = tuple(
        {"kind": "SIGKILL", "phase": phase, "rank": rank, "step": step}
        for phase, rank, step in (("data", 1, 3), ("bucket:0", 0, 4), ("commit", 1, 6))
    )

    calm = run_job(tmp_path / "calm", Job(**shape | {"environment": {"ACCUMULATE": "3"}}))
    outcome = run_job(tmp_path / "killed", Job(faults=faults, arguments=("--max-restarts", "20"), **shape))

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1, 2: 1}
    assert (tmp_path / "killed" / "died").exists()
    assert differences(outcome, calm) == []
    assert max(calm.steps) == 8
