"""A spare of a sharded job has its model, and has tried a step, before it takes a rank. Every bit is a calm run's."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from handing_over import committed, one_after_the_other, with_agents
from killing import Outcome, differences, run_job
from sharded_jobs import sharded, world_of

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(600),
    pytest.mark.e2e,
]
STEPS, WAITS, KILLED = 14, 4, 8
COMPILED = {"COMPILE": "1"}
WARM = {"UNTIL_TRIED": str(WAITS)}


def lines(folder: Path, *, rank: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines()]


def after_the_kill(outcome: Outcome, *, rank: int) -> list[dict[str, Any]]:
    """What the process says that has the rank at last, in the order of its steps."""
    found = lines(outcome.folder, rank=rank)
    return [line for line in found if line["generation"] == found[-1]["generation"]]


def calm_run(folder: Path, layout: str, **environment: str) -> Outcome:
    calm = run_job(folder, sharded(layout, steps=STEPS, spares=0, environment=environment))
    assert calm.finished, calm.text[-3000:]
    return calm


def killed(folder: Path, layout: str, *, rank: int, every: int | None = None, **environment: str) -> Outcome:
    kill = {"kind": "SIGKILL", "phase": "vote", "rank": rank, "step": KILLED}
    job = sharded(layout, steps=STEPS, every=every, faults=(kill,), pause_s=0.1, environment=environment)
    outcome = run_job(folder, job)
    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-3000:]
    return outcome


@pytest.mark.parametrize(
    ("layout", "every", "rank", "more"),
    [
        ("replicate2 shard2", None, 3, {}),
        ("shard2", 2, 0, {"ELASTIC": "throughput"}),
        ("shard2", 2, 0, {"ELASTIC": "throughput", "EVEN_ROWS": "1"}),
        ("pp2 shard2", 2, 3, {"STAGE_SHAPES": "1"}),
    ],
    ids=["built for this rank", "cut anew for another one", "becomes another one", "a stage of a pipeline"],
)
def test_a_warm_spare_takes_a_lost_rank_and_compiles_nothing_in_its_first_step(
    tmp_path: Path, layout: str, every: int | None, rank: int, more: dict[str, str]
) -> None:
    rows = {name: value for name, value in more.items() if name == "EVEN_ROWS"}
    calm = calm_run(tmp_path / "calm", layout, **COMPILED, **rows)

    outcome = killed(tmp_path / "killed", layout, rank=rank, every=every, **COMPILED, **WARM, **more)

    assert differences(outcome, calm) == []
    assert lines(outcome.folder, rank=rank)[0]["compiled"] > 0, "compiling was not counted"
    cut = "ELASTIC" in more and not rows
    found = after_the_kill(outcome, rank=rank)
    assert {(line["tried"], line["compiled"], line["cut"]) for line in found} == {(True, 0, cut)}


def test_a_spare_gets_its_rank_while_it_makes_its_model_and_gives_its_state_after_the_next_loss(tmp_path: Path) -> None:
    calm = calm_run(tmp_path / "calm", "replicate2")
    faults = tuple(
        {"kind": "SIGKILL", "phase": "vote", "rank": rank, "step": step} for rank, step in ((1, WAITS), (0, KILLED))
    )
    slow = {**WARM, "TRIAL_TAKES_S": "6"}

    outcome = run_job(
        tmp_path / "killed", sharded("replicate2", steps=STEPS, faults=faults, pause_s=0.1, environment=slow)
    )

    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert differences(outcome, calm) == []
    assert all(line["tried"] for line in after_the_kill(outcome, rank=1))


@pytest.mark.parametrize(
    ("layout", "every"),
    [("replicate2 shard2", None), ("shard2", 2)],
    ids=["of other groups", "of a script that may keep its rank"],
)
def test_a_spare_that_is_built_for_another_rank_gives_way_to_a_new_process(
    tmp_path: Path, layout: str, every: int | None
) -> None:
    calm = calm_run(tmp_path / "calm", layout)

    outcome = killed(tmp_path / "killed", layout, rank=0, every=every, **WARM)

    last = world_of(layout) - 1
    assert differences(outcome, calm) == []
    assert f"replacing the spare that was built for rank {last} by a new process" in outcome.text
    assert "generation 4" not in outcome.text, "the new process was not in the view of the loss"
    assert not any(line["tried"] for line in after_the_kill(outcome, rank=0))


def test_a_script_whose_step_cannot_be_tried_is_told_of_and_its_spares_stay_as_they_are(tmp_path: Path) -> None:
    calm = calm_run(tmp_path / "calm", "shard2")
    wait = {"kind": "SIGKILL", "phase": "collective:1", "rank": 1, "step": 30}
    job = sharded("shard2", steps=34, every=2, faults=(wait,), pause_s=0.1, environment={"TRIAL_RAISES": "1"})

    outcome = run_job(tmp_path / "killed", job)

    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1}
    assert differences(outcome, calm) == []
    assert outcome.text.count("spare warm-up failed: ") == 1
    assert "ValueError: this batch cannot be had without a rank (sharded_program.py:" in outcome.text
    assert not any(line["tried"] for line in after_the_kill(outcome, rank=1))


def test_a_spare_that_is_killed_while_it_is_built_is_followed_by_another_one(tmp_path: Path) -> None:
    calm = calm_run(tmp_path / "calm", "shard2")
    faults = (
        {"kind": "SIGKILL", "phase": "trial"},
        {"kind": "SIGKILL", "phase": "collective:1", "rank": 1, "step": KILLED},
    )

    outcome = run_job(
        tmp_path / "killed",
        sharded("shard2", steps=STEPS, every=2, faults=faults, pause_s=0.1, environment=WARM),
    )

    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert "a spare of node 0 is lost: it was killed by SIGKILL" in outcome.text
    assert differences(outcome, calm) == []
    assert all(line["tried"] for line in after_the_kill(outcome, rank=1))


def test_a_planned_hand_over_goes_to_a_spare_that_is_built_for_just_this_rank(tmp_path: Path) -> None:
    """The spare was built for rank 0, and node 1 gives its rank away."""
    calm = run_job(tmp_path / "calm", sharded("replicate2", steps=24, spares=0))
    job = sharded(
        "replicate2", steps=24, nodes=2, spare_nodes=1, spares=0, pause_s=0.3, restart_launchers=False, environment=WARM
    )

    outcome, agents = with_agents(tmp_path / "handed over", job, one_after_the_other([WAITS + 2], nodes=[1]))

    assert [answer.outcome for _, answer in agents.answers] == ["begun", "done"], outcome.text[-3000:]
    assert outcome.codes == (0, 75, 0)
    assert differences(outcome, calm) == []
    assert {rank: [step for step, _ in steps] for rank, steps in committed(outcome.folder).items()} == {
        rank: [*range(24)] for rank in range(2)
    }
    assert all(line["tried"] for line in after_the_kill(outcome, rank=1))
