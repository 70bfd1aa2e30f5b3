"""A loop over ``run.steps`` for each epoch: a rank that is lost in any of them, between two, and after the last."""

from pathlib import Path
from typing import Any

import pytest
from killing import Job, Outcome, run_job

PROGRAM = Path(__file__).with_name("epochs_program.py")


def trained(folder: Path, *, faults: tuple[dict[str, Any], ...] = (), **environment: str) -> tuple[Outcome, list[str]]:
    job = Job(program=PROGRAM, ranks=2, spares=1, steps=0, faults=faults, environment=environment)
    outcome = run_job(folder, job)
    return outcome, [path.read_text() for path in sorted(folder.glob("result*"))]


def killed(step: int) -> tuple[dict[str, Any], ...]:
    return ({"kind": "SIGKILL", "phase": "bucket:0", "rank": 1, "step": step},)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    outcome, results = trained(tmp_path_factory.mktemp("calm"))
    assert outcome.finished, outcome.text[-2000:]
    return results


@pytest.mark.parametrize(
    "step",
    [pytest.param(8, id="the first step of an epoch"), pytest.param(10, id="a later one", marks=pytest.mark.e2e)],
)
def test_a_rank_that_is_lost_in_a_later_epoch_costs_no_bit(calm: list[str], tmp_path: Path, step: int) -> None:
    outcome, results = trained(tmp_path, faults=killed(step))

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-2000:]
    assert results == calm
    assert len(results) == 2


@pytest.mark.e2e
def test_a_rank_that_is_lost_between_two_epochs_is_replaced_in_the_next(calm: list[str], tmp_path: Path) -> None:
    outcome, results = trained(tmp_path, PLACE="between")

    assert outcome.finished, outcome.text[-2000:]
    assert "waiting for the other ranks to end or go on" in outcome.text
    assert results == calm


@pytest.mark.e2e
def test_a_rank_that_is_lost_after_the_last_step_leaves_the_others_to_save_and_the_job_fails(
    calm: list[str], tmp_path: Path
) -> None:
    outcome, results = trained(tmp_path, PLACE="end")

    assert outcome.codes == (1,)
    assert results == calm[:1]
    assert "it was killed by SIGKILL, after the last step of run.steps, where no state is left" in outcome.text


@pytest.mark.e2e
def test_a_collective_of_torch_between_two_loops_is_named_by_the_process_that_has_no_peer_for_it(
    tmp_path: Path,
) -> None:
    outcome, _ = trained(tmp_path, faults=killed(10), PLAIN="1")

    assert outcome.codes == (1,)
    assert "stands between two calls of run.steps" in outcome.text
    assert "use run.all_reduce_mean" in outcome.text
