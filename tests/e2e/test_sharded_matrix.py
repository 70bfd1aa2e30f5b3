"""
Sharded jobs on real processes: every kind of fault, in every phase, at every victim, in nine layouts.

A case passes when its faults have fired, the job went on in place, and every bit of every step is that of a run without
faults. Run one layout with ``-k "[pp2-shard2:"``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kill_matrix as matrix
import pytest
from killing import PATIENT, Outcome, differences, run_job
from sharded_jobs import sharded
from sharded_matrix import SHAPES, Shape, cases, hangs, nodes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
UNHURRIED = PATIENT.replace("progress=60", "progress=15") + ",frozen=1"
CASES = [
    *((shape, "deaths", case) for shape in SHAPES for case in cases(shape)),
    *((shape, "hangs", case) for shape in SHAPES for case in hangs(shape)),
    *((shape, "nodes", case) for shape in SHAPES for case in nodes(shape)),
]
KINDS = {"deaths": cases, "hangs": hangs, "nodes": nodes}
SPACING = 6
BACK_AGAIN_S = 8.0
"""A launcher that was killed is started again, and is the spare node of the next case."""
PAUSE_S = 0.2


def test_there_are_at_least_two_hundred_and_fifty_cases_in_nine_layouts() -> None:
    assert len(CASES) >= 250
    assert len({(shape.layout, case.name) for shape, _, case in CASES}) == len(CASES)
    assert len(SHAPES) == 9
    assert sum(shape.layout.count("2") == 3 for shape in SHAPES) == 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Shape, str], tuple[matrix.Plan, Outcome, Outcome]]:
    """The job of a layout and its calm twin, run when the first of its cases asks."""
    done: dict[tuple[str, str], tuple[matrix.Plan, Outcome, Outcome]] = {}

    def run(shape: Shape, group: str) -> tuple[matrix.Plan, Outcome, Outcome]:
        if (shape.layout, group) not in done:
            folder = tmp_path_factory.mktemp("sharded")
            far = group == "nodes"
            plan = matrix.plan(KINDS[group](shape), spacing=round(BACK_AGAIN_S / PAUSE_S) if far else SPACING)
            more: dict[str, Any] = {"steps": plan.steps, "timeout_s": 1200.0, "deadlines": UNHURRIED}
            calm = run_job(folder / "calm", sharded(shape.layout, spares=0, **more))
            assert calm.finished, calm.text[-3000:]
            job = sharded(shape.layout, every=shape.every, spares=2, faults=plan.faults, **more)
            if far:
                more |= {"nodes": 2, "spare_nodes": 1, "pause_s": PAUSE_S}
                job = sharded(shape.layout, every=2, spares=0, faults=plan.faults, **more)
            done[shape.layout, group] = plan, calm, run_job(folder / "faults", job)
        return done[shape.layout, group]

    return run


@pytest.mark.parametrize(
    ("shape", "group", "case"),
    [pytest.param(*found, id=f"{found[0].layout.replace(' ', '-')}: {found[2].name}") for found in CASES],
)
def test_a_sharded_job_goes_on_bit_for_bit_after(
    shape: Shape, group: str, case: matrix.Case, runs: Callable[[Shape, str], tuple[matrix.Plan, Outcome, Outcome]]
) -> None:
    plan, calm, outcome = runs(shape, group)
    placed = next(placed for placed in plan.cases if placed.case.name == case.name)

    assert all(number in outcome.fired for number in placed.faults), "the fault did not happen, so nothing was tested"
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm, unseen=group == "nodes") == []
    if shape.twins and group == "deaths":
        assert "committed steps are done again" not in outcome.text, "a twin has the running step"


def test_a_rank_and_its_only_twin_lost_together_end_the_job_with_the_reason(tmp_path: Path) -> None:
    both = {"kind": "SIGKILL", "phase": "vote", "rank": 0, "step": 4, "victims": ["rank:2", "self"]}

    outcome = run_job(tmp_path, sharded("replicate2 shard2", steps=12, spares=2, faults=(both,)))

    assert outcome.fired == {0: 1}
    assert outcome.codes == (1,)
    assert "no process has the state of step" in outcome.text


def test_a_rank_and_its_keeper_lost_together_end_the_job_with_the_reason(tmp_path: Path) -> None:
    both = {"kind": "SIGKILL", "phase": "vote", "rank": 0, "step": 5, "victims": ["rank:1", "self"]}

    outcome = run_job(tmp_path, sharded("shard2", steps=12, every=2, spares=2, faults=(both,)))

    assert outcome.fired == {0: 1}
    assert outcome.codes == (1,)
    assert "no process has the state of step" in outcome.text


def test_a_lost_node_of_two_ranks_comes_from_the_snapshots_of_another_node(tmp_path: Path) -> None:
    calm = run_job(tmp_path / "calm", sharded("shard4", steps=12, spares=0))
    node = {"kind": "SIGKILL", "phase": "collective:6", "rank": 2, "step": 7, "victims": ["launcher"]}

    job = sharded("shard4", steps=12, every=2, nodes=2, spares=1, faults=(node,), spare_nodes=1, pause_s=0.2)
    outcome = run_job(tmp_path / "faults", job)

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
