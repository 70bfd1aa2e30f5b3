"""
Guarantees G1, G3 and G7 on real processes: every kind of fault, in every phase, at every victim.

A case passes when its faults have fired, the job went on, and every step after it is bit for bit that of a run without
faults.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import kill_matrix as matrix
import pytest
from killing import QUICK, Job, Outcome, differences, run_job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ONE_NODE = {"ranks": 4, "spares": 1, "pause_s": 0.02, "timeout_s": 600.0}
THREE_NODES = {"nodes": 3, "ranks": 2, "spares": 1, "spare_nodes": 1, "pause_s": 0.25, "timeout_s": 600.0}
PATIENT = f"{QUICK},frozen=1".replace("progress=2.5", "progress=60").replace(
    "view=20,connect=22,transfer=24", "view=50,connect=52,transfer=54"
)
"""On a full machine it takes a while until another process that forks has imported torch."""
UNHURRIED = QUICK.replace("leave=1.2,ready=1.6,minority=3", "leave=5,ready=6,minority=8").replace(
    "progress=2.5", "progress=6"
)
"""One that hangs is waited for; one that is slow is not to be taken for it."""
GROUPS: dict[str, tuple[Callable[[], Iterator[matrix.Case]], dict[str, object], dict[str, int]]] = {
    "deaths": (matrix.deaths, ONE_NODE, {}),
    "hangs": (matrix.hangs, {**ONE_NODE, "deadlines": UNHURRIED}, {}),
    "pairs": (matrix.pairs, ONE_NODE, {}),
    "spares": (matrix.spares, ONE_NODE, {}),
    "during recovery": (matrix.during_recovery, ONE_NODE, {}),
    "during a copy": (matrix.during_copy, ONE_NODE, {}),
    "first step": (matrix.first_step, ONE_NODE, {"first": 0, "spacing": 0}),
    "nodes": (matrix.nodes, THREE_NODES, {"spacing": 14}),
    "stopped": (matrix.stopped, {**ONE_NODE, "spares": 2, "deadlines": PATIENT, "pause_s": 0.5}, {}),
    "stopped launchers": (
        matrix.stopped_launchers,
        {**THREE_NODES, "deadlines": f"{QUICK},frozen=1"},
        {"spacing": 20},
    ),
}
CASES = [(name, case) for name, (cases, _, _) in GROUPS.items() for case in cases()]


def test_there_are_at_least_two_hundred_cases() -> None:
    assert len(CASES) >= 200
    assert len({case.name for _, case in CASES}) == len(CASES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[matrix.Plan, Outcome, Outcome]]:
    """The job of a group and its calm twin, run when the first of its cases asks."""
    done: dict[str, tuple[matrix.Plan, Outcome, Outcome]] = {}

    def run(name: str) -> tuple[matrix.Plan, Outcome, Outcome]:
        if name not in done:
            cases, shape, spread = GROUPS[name]
            folder = tmp_path_factory.mktemp("matrix")
            plan = matrix.plan(cases(), **spread)
            calm = run_job(folder / "calm", _job(plan, {**shape, "pause_s": 0.0}, faults=()))
            assert calm.finished, calm.text[-3000:]
            done[name] = plan, calm, run_job(folder / "faults", _job(plan, shape, faults=plan.faults))
        return done[name]

    return run


@pytest.mark.parametrize(("group", "name"), [(group, case.name) for group, case in CASES])
def test_training_goes_on_bit_for_bit_after(
    group: str, name: str, runs: Callable[[str], tuple[matrix.Plan, Outcome, Outcome]]
) -> None:
    plan, calm, outcome = runs(group)
    placed = next(placed for placed in plan.cases if placed.case.name == name)

    assert all(number in outcome.fired for number in placed.faults), "the fault did not happen, so nothing was tested"
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert outcome.steps[plan.steps - 1].keys() == {0, 1, 2, 3}


def test_when_nobody_has_the_state_any_more_the_job_ends_and_says_so(tmp_path: Path) -> None:
    everybody = {"kind": "SIGKILL", "phase": "vote", "rank": 0, "step": 4}
    everybody["victims"] = ["rank:1", "rank:2", "rank:3", "self"]

    outcome = run_job(tmp_path, Job(steps=12, faults=(everybody,)))

    assert outcome.fired == {0: 1}
    assert outcome.codes == (1,)
    assert "no process has the state of step" in outcome.text
    assert max(outcome.steps) <= 4, "training went on from a state that nobody had"


def test_a_minority_of_launchers_stops_and_says_so(tmp_path: Path) -> None:
    faults = [
        {"kind": "SIGKILL", "phase": "bucket:1", "rank": rank, "step": 4, "victims": ["launcher"]} for rank in (0, 2)
    ]
    shape = {**THREE_NODES, "restart_launchers": False, "timeout_s": 60.0}

    outcome = run_job(tmp_path, Job(steps=30, faults=tuple(faults), **shape))  # type: ignore[arg-type]

    assert len(outcome.fired) == 2
    assert sorted(outcome.codes) == [-9, -9, 1]
    assert "launchers that may vote are in reach and 2 are needed" in outcome.text


def _job(plan: matrix.Plan, shape: dict[str, object], *, faults: tuple[matrix.Spec, ...]) -> Job:
    return Job(steps=plan.steps, faults=faults, arguments=("--max-restarts", "40"), **shape)  # type: ignore[arg-type]
