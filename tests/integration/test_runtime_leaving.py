"""Ranks that leave their loop before its end: all at one step is success, one alone is said at once."""

from pathlib import Path

import pytest
from killing import Job, Outcome, run_job

PROGRAM = Path(__file__).with_name("leaving_program.py")


def left(folder: Path, *last: int, totals: str = "1000") -> tuple[Outcome, list[str]]:
    environment = {"LAST": ",".join(map(str, last)), "TOTALS": totals}
    job = Job(program=PROGRAM, ranks=2, spares=1, steps=0, environment=environment)
    outcome = run_job(folder, job)
    return outcome, [path.read_text() for path in sorted(folder.glob("left*"))]


@pytest.mark.e2e
def test_early_stopping_of_all_ranks_at_one_step_is_success(tmp_path: Path) -> None:
    outcome, steps = left(tmp_path, 4, 4)

    assert outcome.finished, outcome.text[-2000:]
    assert steps == ["5", "5"]
    assert "starting generation 3" not in outcome.text


def test_a_rank_that_leaves_alone_ends_the_job_with_that_reason(tmp_path: Path) -> None:
    outcome, steps = left(tmp_path, 9, 4)

    assert outcome.codes == (1,)
    assert steps == ["5"]
    assert (
        "the job ends: rank 1 of node 0 left run.steps after 5 of 1000 steps and ended with exit code 0" in outcome.text
    )


@pytest.mark.e2e
def test_a_rank_that_ends_behind_a_loop_while_another_begins_the_next_ends_the_job(tmp_path: Path) -> None:
    outcome, steps = left(tmp_path, 5, 10, totals="5,10")

    assert outcome.codes == (1,)
    assert steps == ["5"]
    assert "the job ends: rank 0 has ended with exit code 0, and rank 1 of node 0 goes on in another" in outcome.text
