"""Steps that a GradScaler skips where a gradient is not finite on one rank, and a rank that is lost meanwhile."""

from pathlib import Path

import pytest
from killing import PATIENT, Job, run_job

PROGRAM = Path(__file__).with_name("scaler_program.py")


def trained(folder: Path, **environment: str) -> list[str]:
    job = Job(program=PROGRAM, ranks=2, steps=0, environment=environment, deadlines=PATIENT, torch="torch")
    outcome = run_job(folder, job)
    assert outcome.finished, outcome.text[-2000:]
    assert "raised" not in outcome.text
    return [path.read_text() for path in sorted(folder.glob("result*"))]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return trained(tmp_path_factory.mktemp("calm"))


def test_steps_are_skipped_on_all_ranks_alike(calm: list[str]) -> None:
    [one, other] = [result.split(" ", 1)[1] for result in calm]

    assert one == other
    assert one.endswith("{7}")


@pytest.mark.e2e
@pytest.mark.parametrize("at", [pytest.param("5", id="a step with an update"), pytest.param("6", id="a skipped one")])
def test_a_rank_that_is_lost_behind_the_scaling_costs_no_bit(calm: list[str], tmp_path: Path, at: str) -> None:
    assert trained(tmp_path, AT=at) == calm
    assert (tmp_path / "died").exists()
