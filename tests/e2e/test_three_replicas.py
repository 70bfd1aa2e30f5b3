"""One of three replicas lost a hundred times, in each phase of a step: no loss ends the job, and no bit is another."""

from collections.abc import Iterator
from pathlib import Path

import kill_matrix as matrix
import pytest
from killing import PATIENT, Job, Outcome, differences, run_job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
JOBS = 4
SHAPE = {"ranks": 3, "deadlines": PATIENT, "timeout_s": 600.0}


def cases(job: int) -> Iterator[matrix.Case]:
    """Each phase at each rank, and once more at the moment at which one rank alone may have finished the step."""
    yield from matrix.deaths(ranks=range(3), kinds=("SIGKILL",))
    rank = job % 3
    yield matrix.Case(
        f"SIGKILL in commit at rank {rank} once more", ({"kind": "SIGKILL", "phase": "commit", "rank": rank},)
    )


PLANS = [matrix.plan(cases(job), spacing=4) for job in range(JOBS)]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_job(tmp_path_factory.mktemp("calm"), Job(steps=PLANS[0].steps, spares=0, **SHAPE))  # type: ignore[arg-type]
    assert outcome.finished, outcome.text[-3000:]
    return outcome


def test_there_are_a_hundred_losses() -> None:
    assert sum(len(plan.cases) for plan in PLANS) == 100


@pytest.mark.parametrize("number", range(JOBS))
def test_three_replicas_that_lose_one_never_lose_a_step(tmp_path: Path, number: int, calm: Outcome) -> None:
    plan = PLANS[number]
    arguments = ("--max-restarts", "40")

    outcome = run_job(
        tmp_path,
        Job(steps=plan.steps, faults=plan.faults, pause_s=0.02, arguments=arguments, **SHAPE),  # type: ignore[arg-type]
    )

    assert "would lose" not in outcome.text, outcome.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert len(outcome.fired) == len(plan.faults)
    assert differences(outcome, calm, unseen=True) == []
