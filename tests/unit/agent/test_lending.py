"""Nodes of elastic jobs on Slurm: what its queue says, who is told to leave, and what becomes of those who stay."""

from collections.abc import Sequence

import pytest
from waiting import eventually

from holdfast_agent.lending import Lender, QueuedJob, parse_free, parse_queue, tasks_to_end
from holdfast_agent.slurm import SlurmError

NIGHT = [f"7|{task}|7_{task}|RUNNING|100|1|dev|None|elastic=2:5" for task in range(5)]
URGENT = "9|N/A|9|PENDING|500|3|dev|Resources|"
IDLE = "dev|idle"


class Slurm:
    """Answers as its programs would."""

    def __init__(self, *jobs: str, nodes: Sequence[str] = (IDLE,)) -> None:
        self.jobs, self.nodes, self.now_s = list(jobs), list(nodes), 0.0
        self.asked: list[str] = []
        self.lender = Lender(program=self, notice_s=60, say=lambda _: None, monotonic=lambda: self.now_s)

    def run(self, argv: Sequence[str]) -> str:
        if argv[0] in ("squeue", "sinfo"):
            return "\n".join(self.jobs if argv[0] == "squeue" else self.nodes)
        self.asked.append(" ".join(argv))
        return ""

    def look(self, *, after_s: float = 3) -> list[str]:
        """What is asked of Slurm in one look."""
        self.now_s += after_s
        self.asked.clear()
        self.lender.look()
        return self.asked


def test_the_queue_is_read_with_any_comment_and_lines_that_are_none_are_passed_over() -> None:
    text = "7|0|7_0|RUNNING|100|1|dev|None|a|b elastic=2:3\nslurm_load_jobs error\n8|N/A|8|PENDING|1|2|a,b|Priority|\n"
    assert parse_queue(text) == (
        QueuedJob("7", 0, "7_0", "RUNNING", 100, 1, "dev", "None", (2, 3)),
        QueuedJob("8", None, "8", "PENDING", 1, 2, "a,b", "Priority"),
    )


def test_a_job_that_is_no_array_of_single_nodes_is_not_elastic() -> None:
    for line in ("7|N/A|7|RUNNING|1|1|dev|None|elastic=2:5", "7|0|7_0|RUNNING|1|2|dev|None|elastic=2:5"):
        assert parse_queue(line)[0].sizes == ()


def test_nodes_are_free_that_idle_are_planned_for_a_job_or_about_to_idle() -> None:
    text = "dev|idle\ndev|plnd\nbig|idle\ndev|comp\ndev|alloc\ndev|drng\ndev|idle*\ndev|down\n"
    assert parse_free(text) == {"dev": 3, "big": 1}


def test_as_many_tasks_are_told_to_leave_as_are_needed_and_once() -> None:
    slurm = Slurm(*NIGHT, URGENT)
    assert slurm.look() == ["scancel --batch --signal=TERM 7_3", "scancel --batch --signal=TERM 7_4"]
    assert slurm.look() == []
    slurm.jobs = [*NIGHT[:4], "7|4|7_4|PENDING|100|1|dev|BeginTime|elastic=2:5", URGENT]
    slurm.nodes = [IDLE, "dev|comp"]
    assert slurm.look() == []
    assert slurm.lender.numbers() == {"nodes_taken_back_total": 2}


def test_a_task_that_is_still_there_after_its_notice_is_put_back_into_the_queue_once() -> None:
    slurm = Slurm(*NIGHT, URGENT)
    slurm.look()
    slurm.jobs = [*NIGHT[:4], URGENT]
    slurm.nodes = [IDLE, IDLE]
    assert slurm.look(after_s=59) == []
    assert slurm.look(after_s=2) == ["scontrol requeue 7_3"]
    assert slurm.look(after_s=60) == []


def test_a_job_that_does_not_begin_with_the_nodes_that_were_taken_for_it_gets_no_more_for_a_while() -> None:
    slurm = Slurm(*NIGHT, URGENT)
    assert len(slurm.look()) == 2
    slurm.jobs, slurm.nodes = [*NIGHT[:3], URGENT], [IDLE] * 3
    slurm.look()
    slurm.jobs, slurm.nodes = [*NIGHT, URGENT], [IDLE]
    assert slurm.look(after_s=100) == []
    assert len(slurm.look(after_s=300)) == 2


@pytest.mark.parametrize(
    "other",
    [
        URGENT.replace("500", "100"),
        URGENT.replace("Resources", "Dependency"),
        URGENT.replace("Resources", "JobHeldUser"),
        URGENT.replace("|dev|", "|big|"),
        URGENT.replace("|3|", "|4|"),
        URGENT.replace("PENDING", "RUNNING"),
    ],
    ids=["same priority", "depends", "held", "other partition", "more than can be given", "runs"],
)
def test_nothing_is_taken_for_a_job_that(other: str) -> None:
    assert Slurm(*NIGHT, other).look() == []


def test_an_elastic_job_that_waits_as_a_whole_gets_the_least_that_it_can_begin_with() -> None:
    new = [f"9|{task}|9_{task}|PENDING|500|1|dev|Resources|elastic=2:3" for task in range(3)]
    assert Slurm(*NIGHT, *new).look() == ["scancel --batch --signal=TERM 7_4"]


def test_what_was_told_before_counts_as_on_its_way() -> None:
    queue = parse_queue("\n".join([*NIGHT, URGENT]))
    assert tasks_to_end(queue, free={"dev": 1}, notified=["7_1"]) == (("7_4",), ("9",))
    assert tasks_to_end(queue, free={"dev": 1}, notified=["7_1", "7_2"]) == ((), ())


def test_a_slurm_that_does_not_answer_is_asked_again_and_said_once() -> None:
    said: list[str] = []

    class Silent:
        asked = 0

        def run(self, argv: Sequence[str]) -> str:
            self.asked += 1
            if self.asked == 3:
                lender.stop()
            raise SlurmError("squeue: no answer")

    silent = Silent()
    lender = Lender(program=silent, notice_s=1, every_s=0.001, say=said.append)
    lender.start()
    assert eventually(lambda: silent.asked >= 3)
    assert said == ["lending stopped: squeue: no answer"]
