"""A validation between two steps: a rank that is lost in it, behind it, after the last step, and in one of a script."""

from pathlib import Path

import pytest
from killing import PATIENT, Job, Outcome, run_job

PROGRAM = Path(__file__).with_name("between_program.py")


def trained(folder: Path, **environment: str) -> tuple[Outcome, dict[str, str]]:
    preloaded = "torch" if environment.get("LAYOUT") == "sharded" else "plain_torch"
    job = Job(program=PROGRAM, steps=0, ranks=2, environment=environment, deadlines=PATIENT, torch=preloaded)
    outcome = run_job(folder, job)
    found = [*folder.glob("validation*"), *folder.glob("result*")]
    return outcome, {path.name: path.read_text() for path in found}


@pytest.fixture(scope="module", params=["replicas", pytest.param("sharded", marks=pytest.mark.e2e)])
def calm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    outcome, results = trained(tmp_path_factory.mktemp("calm"), LAYOUT=request.param)
    assert outcome.finished, outcome.text[-2000:]
    assert len(results) == 6
    return request.param, results


@pytest.mark.parametrize(
    ("place", "at"),
    [
        pytest.param("validation", "8", id="in it"),
        pytest.param("behind", "8", id="behind its collective", marks=pytest.mark.e2e),
        pytest.param("step", "8", id="in the next step", marks=pytest.mark.e2e),
        pytest.param("validation", "16", id="after the last step", marks=pytest.mark.e2e),
    ],
)
def test_a_rank_that_is_lost_around_a_validation_costs_no_bit_and_no_number(
    calm: tuple[str, dict[str, str]], tmp_path: Path, place: str, at: str
) -> None:
    layout, expected = calm

    outcome, results = trained(tmp_path, LAYOUT=layout, PLACE=place, AT=at)

    assert (tmp_path / "died").exists()
    assert outcome.finished, outcome.text[-2000:]
    assert results == expected
    assert "stage is 'first', and 'second' on the other ranks; give what decides" in outcome.text


@pytest.mark.e2e
def test_a_rank_that_is_lost_after_the_last_step_of_an_epoch_costs_no_bit_either(tmp_path: Path) -> None:
    _, expected = trained(tmp_path / "calm", EPOCHS="2")

    outcome, results = trained(tmp_path / "killed", EPOCHS="2", PLACE="validation", AT="8")

    assert outcome.finished, outcome.text[-2000:]
    assert results == expected


@pytest.mark.parametrize(("place", "after"), [pytest.param("outside", 6, marks=pytest.mark.e2e), ("end", 16)])
def test_a_collective_outside_of_steps_is_named_by_its_line_and_not_charged_to_the_program(
    tmp_path: Path, place: str, after: int
) -> None:
    outcome, _ = trained(tmp_path, PLACE=place, AT=str(after))

    assert outcome.codes == (1,)
    assert outcome.text.count("Traceback (most recent call last)") == 1
    [last] = [line for line in outcome.text.splitlines() if "the job ends: " in line]
    assert "rank 1 of node 0 is lost: it was killed by SIGKILL" in last
    assert f"rank 0 of node 0 was left alone in a collective outside of steps, after {after} steps" in last
    assert "run.steps(total, between=...)" in last
    assert "between_program.py:" in last
    assert "trying again does not help" not in outcome.text
