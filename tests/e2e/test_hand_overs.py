"""
Planned hand-overs on real processes: twenty in a row, and each kind of loss in the middle of one.

A launcher that has given its ranks away is started again, as a scheduler would, and is the spare of the next one. A
case passes when its fault has fired, the job went on, and every step is bit for bit that of a run without either.
"""

import itertools
import os
import statistics
from pathlib import Path
from typing import Any

import pytest
from handing_over import committed, events, one_after_the_other, with_agents
from killing import PATIENT, Job, Outcome, differences, run_job

from holdfast_common import kinds, timeline

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

FIVE: dict[str, Any] = {"nodes": 5, "ranks": 1, "spares": 0, "spare_nodes": 1, "deadlines": PATIENT}
TIMES = 20
BESIDE_THE_COPY_S = 1.0
STEPS = 24


def calm_run(folder: Path, *, steps: int) -> Outcome:
    outcome = run_job(folder, Job(steps=steps, ranks=4, spares=0, deadlines=PATIENT))
    assert outcome.finished, outcome.text[-3000:]
    return outcome


def pauses(folder: Path, steps: list[int]) -> tuple[list[tuple[float, float]], float]:
    """
    For each hand-over the seconds without a step, beside those of a step, and those of the copy in them.

    And how long this machine, with all that it does beside, held up an ordinary step of the same run at most.
    """
    by_rank = committed(folder)
    gaps = {
        after: later - earlier
        for lines in by_rank.values()
        for (_, earlier), (after, later) in itertools.pairwise(lines)
    }
    usual = statistics.median(gaps.values())
    copies = {
        resumed.detail["step"]: copied.duration_s or 0.0
        for resumed in events(folder)
        if resumed.kind == kinds.JOB_RESUMED
        for copied in events(folder)
        if copied.kind == kinds.RECOVERY_COPIED and 0 <= resumed.time_ns - copied.time_ns < 30e9
    }
    longest = {
        step: max(
            later - earlier
            for lines in by_rank.values()
            for (_, earlier), (after, later) in itertools.pairwise(lines)
            if after == step
        )
        for step in steps
    }
    near = {step + offset for step in steps for offset in (-1, 0, 1)}
    late = max(gap - usual for step, gap in gaps.items() if step not in near)
    return [(longest[step] - usual, copies.get(step, 0.0)) for step in steps], late


def test_twenty_of_twenty_lose_no_step_and_do_none_again(tmp_path: Path) -> None:
    folder = tmp_path / "handed over"
    wish = one_after_the_other([4] * (TIMES + 1), nodes=[number % 5 for number in range(TIMES + 1)])
    job = Job(steps=100_000, pause_s=0.4, timeout_s=1500.0, **FIVE)

    outcome, agents = with_agents(folder, job, wish, times=TIMES)

    done = agents.of("done")
    assert len(done) == TIMES, outcome.text[-3000:]
    assert agents.of("refused") + agents.of("failed") == []
    assert all("warm processes" in answer.reason for answer in agents.of("later")), "asked before the spare was there"
    assert [answer.steps_lost for answer in done] == [0] * TIMES
    lines = committed(folder)
    assert all([step for step, _ in steps] == [*range(len(steps))] for steps in lines.values()), "done again, or lost"
    common = min(len(steps) for steps in lines.values())
    assert differences(outcome, calm_run(tmp_path / "calm", steps=common)) == []
    (book,) = timeline(events(folder)).jobs
    assert book.steps_redone == 0
    seconds, late = pauses(folder, [answer.step for answer in done if answer.step < common])
    beside = sorted(pause - copy for pause, copy in seconds)
    print(
        f"\n{len(done)} of {TIMES} hand-overs, 0 steps lost, 0 done again; seconds without a step beside the copy: "
        f"median {statistics.median(beside):.2f}, longest {beside[-1]:.2f}; the copy: "
        f"median {statistics.median(copy for _, copy in seconds):.3f}; an ordinary step was up to {late:.2f} late, "
        f"at a load of {os.getloadavg()[1]:.0f} on {os.cpu_count()} processors"
    )
    assert statistics.median(beside) <= BESIDE_THE_COPY_S
    assert beside[-1] <= BESIDE_THE_COPY_S + late


LOSSES: dict[str, dict[str, Any]] = {
    "the launcher that leaves, while its state may be copied": {"phase": "give", "victims": ["launcher"]},
    "the rank that leaves, while its state may be copied": {"phase": "give"},
    "the launcher of the spare, in the copy": {"phase": "copy-in", "victims": ["launcher"]},
    "the spare, in the copy": {"phase": "copy-in"},
    "another launcher, in the copy": {"phase": "copy-out", "victims": ["launcher"]},
    "another rank, in the copy": {"phase": "copy-out"},
    "the launcher that leaves, before the common step": {
        "phase": "vote",
        "rank": 1,
        "step": 5,
        "victims": ["launcher"],
    },
    "another launcher, before the common step": {"phase": "vote", "rank": 2, "step": 5, "victims": ["launcher"]},
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return calm_run(tmp_path_factory.mktemp("calm"), steps=STEPS)


@pytest.mark.parametrize("name", LOSSES)
def test_a_hand_over_goes_on_bit_for_bit_after_the_loss_of(name: str, tmp_path: Path, calm: Outcome) -> None:
    fault = {"kind": "SIGKILL", **LOSSES[name]}
    job = Job(steps=STEPS, pause_s=0.4, faults=(fault,), restart_launchers=False, **FIVE)

    outcome, agents = with_agents(tmp_path, job, one_after_the_other([3], nodes=[1]))

    assert outcome.fired == {0: 1}, "the fault did not happen, so nothing was tested"
    assert [answer.outcome for _, answer in agents.answers][:1] == ["begun"], outcome.text[-3000:]
    assert set(outcome.codes) <= {0, 75, -9}, outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert outcome.steps[STEPS - 1].keys() == {0, 1, 2, 3}
    (book,) = timeline(events(tmp_path)).jobs
    assert (book.steps, book.finished_ns is not None) == (STEPS, True)
