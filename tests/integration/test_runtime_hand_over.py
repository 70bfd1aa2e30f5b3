"""The ranks of a node go to the spare while the job goes on: nothing is lost, nothing is done again, the same bits."""

from pathlib import Path

import pytest
from handing_over import Agents, committed, events, one_after_the_other, with_agents
from killing import PATIENT, Job, differences, run_job

from holdfast_common import kinds, timeline

FIVE = {"nodes": 5, "ranks": 1, "spares": 0, "spare_nodes": 1, "deadlines": PATIENT}
STEPS = 16

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_a_node_gives_its_rank_to_the_spare_between_two_steps(tmp_path: Path) -> None:
    calm = run_job(tmp_path / "calm", Job(steps=STEPS, nodes=1, ranks=4, spares=0, deadlines=PATIENT))
    folder = tmp_path / "handed over"
    job = Job(steps=STEPS, pause_s=0.3, restart_launchers=False, **FIVE)  # type: ignore[arg-type]

    outcome, agents = with_agents(folder, job, one_after_the_other([4], nodes=[1]))

    assert outcome.codes == (0, 75, 0, 0, 0)
    assert [answer.outcome for _, answer in agents.answers] == ["begun", "done"]
    (done,) = agents.of("done")
    assert (done.ranks, done.steps_lost) == ((1,), 0)
    assert differences(outcome, calm) == []
    assert {rank: [step for step, _ in steps] for rank, steps in committed(folder).items()} == {
        rank: [*range(STEPS)] for rank in range(4)
    }
    assert agents.refused == {}
    told = events(folder)
    assert [event.kind for event in told if event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED)] == [
        kinds.JOB_STARTED,
        kinds.JOB_RESUMED,
    ]
    (book,) = timeline(told).jobs
    assert (book.steps, book.steps_redone, book.attempts) == (STEPS, 0, 2)


def test_ranks_are_asked_where_they_are_and_the_answer_is_in_the_event_log(tmp_path: Path) -> None:
    once = iter([0])
    agents = Agents(
        tmp_path,
        1,
        lambda jobs, _: next(once, -1) if jobs and max(job.step for job in jobs.values()) > 1 else -1,
        "dump",
    )

    with agents:
        outcome = run_job(tmp_path, Job(steps=12, pause_s=0.3, ranks=2, spares=0, deadlines=PATIENT))

    assert outcome.finished, outcome.text[-3000:]
    ((_, done),) = agents.answers
    assert (done.command, done.outcome) == ("dump", "done")
    told = [event for event in events(tmp_path) if event.kind == kinds.STACKS_DUMPED]
    assert sorted(event.detail["rank"] for event in told) == [0, 1]
    for event in told:
        path = Path(str(event.detail["path"]))
        assert "runtime_program.py" in path.read_text()
        assert event.evidence
        path.unlink()
    Path(done.reason).rmdir()


@pytest.mark.e2e
def test_a_node_in_quarantine_takes_no_rank_any_more(tmp_path: Path) -> None:
    once = iter([2])
    fault = {"kind": "SIGKILL", "phase": "vote", "rank": 1, "step": 8, "victims": ["self"]}
    job = Job(steps=14, pause_s=0.3, nodes=3, ranks=1, spares=0, spare_nodes=1, faults=(fault,), deadlines=PATIENT)
    agents = Agents(
        tmp_path,
        3,
        lambda jobs, _: next(once, -1) if 2 in jobs and max(job.step for job in jobs.values()) > 1 else -1,
        "quarantine",
    )

    with agents:
        outcome = run_job(tmp_path, job)

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert [(node, answer.outcome) for node, answer in agents.answers] == [(2, "done")]
    resumed = [event for event in events(tmp_path) if event.kind == kinds.JOB_RESUMED]
    assert [event.detail["nodes"] for event in resumed] == ["i-0,i-1"], "the rank went to a new process of its own node"


@pytest.mark.e2e
def test_a_rank_that_stands_still_is_started_anew_and_the_job_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    calm = run_job(tmp_path / "calm", Job(steps=STEPS, nodes=1, ranks=3, spares=0, deadlines=PATIENT))
    once = iter([1])
    folder = tmp_path / "restarted"
    agents = Agents(
        folder,
        3,
        lambda jobs, _: next(once, -1) if 1 in jobs and max(job.step for job in jobs.values()) > 2 else -1,
        "restart",
    )

    with agents:
        outcome = run_job(folder, Job(steps=STEPS, pause_s=0.3, nodes=3, ranks=1, spares=0, deadlines=PATIENT))

    assert outcome.finished, outcome.text[-3000:]
    assert [(node, answer.outcome, answer.ranks) for node, answer in agents.answers] == [(1, "done", (1,))]
    assert differences(outcome, calm) == []
    assert [event.kind for event in events(folder)].count(kinds.JOB_RESUMED) == 1
