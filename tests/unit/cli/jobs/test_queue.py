"""Jobs as the controller has them, beside what accounting has been told."""

import dataclasses

import pytest

from holdfast.cli.slurm import DELIMITER, SQUEUE_FIELDS, JobRecord, merged, outcome, parse_squeue


def text(**changes: str) -> str:
    said = {
        "JobArrayID": "7", "JobID": "7", "State": "RUNNING", "exit_code": "0", "SubmitTime": "1795371912",
        "StartTime": "1795371913", "EndTime": "NONE", "TimeUsed": "1:31", "NodeList": "ip-10-1-0-11",
        "UserName": "ubuntu", "Reason": "None", "WorkDir": "/fsx/a b", "Command": "./a b.sbatch one", "Name": "train",
        **changes,
    }  # fmt: skip
    return "".join(f"{said[field]}{DELIMITER}" for field in SQUEUE_FIELDS) + "\n"


def job(number: str, state: str) -> JobRecord:
    return parse_squeue(text(JobArrayID=number, State=state))[0]


def test_a_job_that_runs_has_a_start_and_no_end() -> None:
    (one,) = parse_squeue(text())
    assert (one.job_id, one.started_s, one.ended_s, one.elapsed_s) == ("7", 1795371913, None, 91)
    assert (one.why, one.work_dir, one.submit_line) == ("", "/fsx/a b", "sbatch ./a b.sbatch one")


def test_a_job_that_waits_says_for_what_and_has_no_start() -> None:
    (one,) = parse_squeue(text(State="PENDING", StartTime="1795371990", Reason="BeginTime", TimeUsed="0:00"))
    assert (one.started_s, one.has_ended) == (None, False)
    assert one.why == "waits: its start time is in the future (BeginTime)"


@pytest.mark.parametrize(("status", "why"), [("768", "exit code 3"), ("9", "ended by signal 9 (SIGKILL)")])
def test_a_job_that_failed_just_now_says_why(status: str, why: str) -> None:
    (one,) = parse_squeue(text(State="FAILED", exit_code=status, EndTime="1795371999"))
    assert (one.why, one.ended_s) == (why, 1795371999)


@pytest.mark.parametrize("name", ["two\nlines", "\n\n", ""])
def test_no_name_tears_a_record_or_its_neighbour_apart(name: str) -> None:
    found = parse_squeue(text(Name=name, Command=f"./x {name}") + text(JobArrayID="8"))
    assert [(one.job_id, one.name) for one in found] == [("7", name), ("8", "train")]


@pytest.mark.parametrize(("clock", "seconds"), [("0:02", 2), ("01:02:03", 3723), ("1-00:00:00", 86400), ("INVALID", 0)])
def test_spans_are_read_as_squeue_writes_them(clock: str, seconds: int) -> None:
    assert parse_squeue(text(TimeUsed=clock))[0].elapsed_s == seconds


def test_tasks_of_an_array_that_accounting_has_not_been_told_of_keep_the_job_from_being_over() -> None:
    remembered = [job("7_2", "COMPLETED")]
    live = [job("7_0", "RUNNING"), job("7_1", "PENDING"), job("7_2", "COMPLETED")]
    found = merged(remembered, live)
    assert [one.job_id for one in found] == ["7_2", "7_0", "7_1"]
    assert outcome(one.state for one in found) == ""


def test_tasks_that_wait_take_the_place_of_their_bracket() -> None:
    found = merged([job("7_[0-1]", "PENDING"), job("6", "COMPLETED")], [job("7_0", "PENDING"), job("7_1", "PENDING")])
    assert [one.job_id for one in found] == ["6", "7_0", "7_1"]


def test_a_task_of_which_accounting_knows_only_the_end_is_not_told_twice() -> None:
    found = merged([job("7", "COMPLETED"), job("7_0", "COMPLETED")], [job("7_0", "COMPLETED"), job("7_1", "COMPLETED")])
    assert [one.job_id for one in found] == ["7_0", "7_1"]


def test_a_job_that_is_requeued_is_not_over_though_accounting_has_its_last_attempt() -> None:
    assert merged([job("7", "NODE_FAIL")], [job("7", "PENDING")])[0].state == "PENDING"


def test_accounting_tells_of_an_end_that_both_know() -> None:
    ended = dataclasses.replace(job("7", "CANCELLED"), by="1000")
    assert merged([ended], [job("7", "CANCELLED")]) == [ended]


def test_a_short_job_keeps_its_name_and_its_user_while_accounting_knows_only_its_end() -> None:
    nameless = dataclasses.replace(job("7", "FAILED"), name="allocation", user="root", exit_code=3)
    (found,) = merged([nameless], [job("7", "FAILED")])
    assert (found.name, found.user, found.exit_code) == ("train", "ubuntu", 3)


def test_a_part_of_which_accounting_knows_only_the_end_is_not_told_twice() -> None:
    live = [dataclasses.replace(job(f"7+{part}", "COMPLETED"), number=number) for part, number in enumerate(("7", "8"))]

    found = merged([job("7", "COMPLETED")], live)

    assert [one.job_id for one in found] == ["7+0", "7+1"]
