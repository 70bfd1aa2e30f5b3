"""Healthy slow phases: a rank that works is named as such, and none is at fault."""

from typing import Any

import pytest
from diagnosing import NOW_S, PACE, SPIN, VOTE, found, pending, plain, process, rank

from holdfast.cli.diagnosis import Evidence, Frame, Output, Pace, PendingJob, diagnose

SITE = "/opt/venv/lib/python3.12/site-packages"
COMPILE = (Frame(function="compile_fx", file=f"{SITE}/torch/_inductor/compile_fx.py", line=1),)
SAVE = (
    Frame(function="fsync", file="/fsx/jobs/7/io.py", line=1),
    Frame(function="save", file="/fsx/jobs/7/train.py", line=8),
)
EVALUATE = (
    Frame(function="_call_impl", file=f"{SITE}/torch/nn/modules/module.py", line=1),
    Frame(function="evaluate", file="/fsx/jobs/7/train.py", line=8),
)
LOADER = (Frame(function="_next_data", file=f"{SITE}/torch/utils/data/dataloader.py", line=7),)
FIRST = Pace(step=0, age_s=170.0, is_first=True)
BUSY = {"states": "RRR", "waits_in": "0", "cpu": 1.0}


def accuses(diagnosis: Any) -> list[str]:
    return [one.text for one in diagnosis.culprits]


def test_a_job_whose_launchers_wait_for_a_late_one() -> None:
    starts = [plain(number) for number in (0, 1)]
    late = PendingJob(name="Resources", words="waits: no node is free")
    one = found(*starts, pace=Pace(age_s=300.0, is_first=True), starting="launchers of nodes 2", pending=[late])

    assert accuses(one) == []
    assert (one.verdict, one.summary) == ("waits", "the job has not begun: its launchers wait for launchers of nodes 2")
    assert one.reason == ["waits: no node is free"]
    assert "--deadlines start=" in one.next[-1]


@pytest.mark.parametrize("alone", [False, True])
def test_a_first_step_that_compiles(alone: bool) -> None:
    compiles = [rank(0, own=BUSY, phase="forward", stack=COMPILE, silent_s=170.0)]
    others = [rank(number) if alone else rank(number, own=BUSY, phase="forward", stack=COMPILE) for number in (1, 2)]
    one = found(*compiles, *others, pace=FIRST)

    assert accuses(one) == []
    assert "compile" in one.summary


@pytest.mark.parametrize("own", [{"states": "DDD"}, {"states": "SSS"}, {"states": "DSD", "moved_bytes": 1 << 28}])
def test_a_checkpoint_of_a_minute_on_one_rank(own: dict[str, Any]) -> None:
    one = found(rank(0, own=own, phase="other", stack=SAVE, silent_s=60.0), rank(1), rank(2))

    assert accuses(one) == []
    assert one.verdict == "waits"
    assert "writes a checkpoint" in one.summary


def test_an_evaluation_on_rank_0() -> None:
    one = found(rank(0, own=BUSY, phase="other", stack=EVALUATE, silent_s=100.0), rank(1), rank(2))

    assert accuses(one) == []
    assert "evaluates at train.py:8 in evaluate" in one.summary


def test_a_loader_that_warms_up() -> None:
    one = found(
        rank(0, phase="other", stack=LOADER, workers=[process(5, cpu=0.9)], silent_s=170.0), rank(1), pace=FIRST
    )

    assert accuses(one) == []


def test_a_loader_that_reads_a_slow_file_system() -> None:
    reads = rank(0, phase="other", stack=LOADER, workers=[process(5, states="DDD", moved_bytes=1 << 24)], silent_s=40.0)

    assert accuses(found(reads, rank(1))) == []


def test_a_long_step_that_is_usual_for_this_job() -> None:
    computes = rank(1, own=BUSY, phase="forward", stack=SPIN, silent_s=45.0)

    assert accuses(found(rank(0), computes, pace=Pace(step=3, usual_s=30.0, longest_s=31.0, age_s=45.0))) == []
    assert accuses(found(rank(0), computes, pace=Pace(step=99, usual_s=0.5, longest_s=40.0, age_s=45.0))) == []


def test_all_ranks_compute() -> None:
    one = found(*(rank(number, own=BUSY, phase="forward", stack=SPIN) for number in range(3)))

    assert accuses(one) == []
    assert one.summary == "no rank waits for another one: all compute"


@pytest.mark.parametrize("name", ["Reservation", "Priority", "BeginTime", "Dependency", "Resources"])
def test_a_queue(name: str) -> None:
    one = pending(name, "in words", usable=4, requested=2)

    assert accuses(one) == []
    assert one.verdict == "waits"


def test_a_job_that_slurm_suspended() -> None:
    one = found(*(rank(number, own={"states": "TTT"}, stack=()) for number in range(2)), state="SUSPENDED")

    assert accuses(one) == []
    assert "suspended" in one.summary


def test_a_recovery() -> None:
    one = found(rank(0), world_size=3, recovering="rank 2 was lost")

    assert accuses(one) == []
    assert one.summary == "the job recovers: rank 2 was lost"


@pytest.mark.parametrize(
    "line", ["saving checkpoint at step 20", "evaluating ...", "compiling the model", "warming up"]
)
def test_a_slow_phase_of_torchrun_that_its_output_announces(line: str) -> None:
    sleeps = plain(0, own={"waits_in": "hrtimer_nanosleep"})
    first = line == "warming up"
    one = found(
        sleeps, plain(1), pace=Pace(age_s=60.0, is_first=first), output=Output(lines=[line], age_s=60.0), deadlines={}
    )

    assert accuses(one) == []


def test_a_pod_that_pulls_its_image() -> None:
    waits = PendingJob(name="ContainerCreating", words="its containers are being created", place="pod x-0")
    one = diagnose(Evidence(job="x", state="Pending", pending=[waits]), now_s=NOW_S)

    assert (accuses(one), one.verdict) == ([], "waits")


def test_a_step_that_has_just_ended() -> None:
    one = found(rank(0, silent_s=0.2), rank(1, own=BUSY, phase="forward", stack=SPIN, silent_s=0.4), pace=Pace(
        step=40, usual_s=0.5, longest_s=2.0, age_s=0.4
    ))  # fmt: skip

    assert accuses(one) == []


def test_a_first_collective_of_all() -> None:
    one = found(rank(0, stack=VOTE, silent_s=1.0), rank(1, stack=VOTE, silent_s=1.0), pace=PACE)

    assert accuses(one) == []
    assert "all ranks wait in the same collective" in one.summary


def test_a_job_that_makes_progress() -> None:
    computes = rank(1, own=BUSY, phase="forward", stack=SPIN, silent_s=0.1)
    one = found(rank(0), computes, pace=Pace(step=40, usual_s=0.5, longest_s=2.0, age_s=0.3))

    assert (accuses(one), one.verdict) == ([], "runs")
    assert one.summary == "no fault found: the job makes progress"
    assert one.next == []
