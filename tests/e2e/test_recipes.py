"""Each recipe of examples/recipes loses ranks, and goes on in place with every bit of a run that lost none."""

from pathlib import Path

import pytest
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job
from recipes import tokens
from sharded_jobs import PRELOADED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
PROGRAM = ROOT / "tests" / "support" / "recipe_program.py"
STEPS = 8
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 3},
    {"kind": "SIGKILL", "phase": "update", "rank": 2, "step": 5},
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokens(tmp_path_factory.mktemp("data") / "text.tokens")


def trained(folder: Path, recipe: str, data: Path, **how: object) -> Outcome:
    shape = {"program": PROGRAM, "torch": PRELOADED, "deadlines": PATIENT, "timeout_s": 600.0, **how}
    return run_job(folder, Job(steps=STEPS, environment={"RECIPE": f"{recipe} --data {data}"}, **shape))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "by_twins"),
    [
        ("fsdp2.py --snapshot-every 2", False),
        ("hsdp.py", True),
        ("tp_dp.py --snapshot-every 2", False),
        ("tp_dp.py --replicas 2 --snapshot-every 0", True),
        ("pp_dp.py --snapshot-every 2", False),
        ("pp_dp.py --replicas 2 --snapshot-every 0", True),
    ],
)
def test_a_recipe_that_loses_ranks_ends_as_one_that_loses_none(
    tmp_path: Path, data: Path, recipe: str, by_twins: bool
) -> None:
    calm = trained(tmp_path / "calm", recipe, data, spares=0)
    outcome = trained(tmp_path / "kills", recipe, data, faults=KILLS)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert sorted(calm.steps) == list(range(STEPS))
    assert differences(outcome, calm) == []
    assert not by_twins or "committed steps are done again" not in outcome.text
