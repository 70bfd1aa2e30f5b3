"""Jobs as Slurm's accounting tells of them, with names that were chosen to confuse."""

import pytest
from accounting import sacct_line

from holdfast.cli.deployed import parse_scontrol, row
from holdfast.cli.slurm import (
    JobRecord,
    newest_first,
    outcome,
    output_files,
    parse_sacct,
    parse_submission,
)
from holdfast.cli.views import folded


def text(*, name: str = "train", **changes: str) -> str:
    given = {"WorkDir": "/fsx/jobs/a b", "SubmitLine": "sbatch --parsable ./a b.sbatch one", "JobName": name}
    return sacct_line(**{"NodeList": "ip-10-1-0-[11-13]", **given, **changes})


def record(**changes: str) -> JobRecord:
    return parse_sacct(text(**changes))[0]


@pytest.mark.parametrize(
    ("state", "exit_code", "why"),
    [
        ("COMPLETED", "0:0", ""),
        ("RUNNING", "0:0", ""),
        ("FAILED", "3:0", "exit code 3"),
        ("FAILED", "0:9", "ended by signal 9 (SIGKILL)"),
        ("FAILED", "137:0", "exit code 137, as of a program ended by SIGKILL"),
        ("TIMEOUT", "0:0", "exceeded its time limit"),
        ("NODE_FAIL", "1:0", "lost a node"),
        ("OUT_OF_MEMORY", "0:125", "ran out of memory"),
        ("CANCELLED by 1000", "0:15", "cancelled by user 1000"),
        ("CANCELLED by 0", "0:15", "cancelled by root"),
    ],
)
def test_what_became_of_a_job_is_told_in_words(state: str, exit_code: str, why: str) -> None:
    assert record(State=state, ExitCode=exit_code).why == why


@pytest.mark.parametrize("name", ["a|b", "two\nlines", "two\nlines\n\nand more", ""])
def test_no_name_tears_a_record_or_its_neighbour_apart(name: str) -> None:
    line = f"sbatch --wrap echo a\necho b {name}"
    found = parse_sacct(f"{text(name=name, SubmitLine=line)}\n{text(name='next', JobID='8')}\n")
    assert [one.job_id for one in found] == ["7", "8"]
    assert found[0].name == name.partition("\n")[0]
    assert found[0].submit_line == line
    assert found[1].name == "next"


def test_a_job_that_has_not_begun_has_no_times_and_no_nodes() -> None:
    waiting = record(State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned", ElapsedRaw="0")
    assert (waiting.started_s, waiting.ended_s, waiting.nodes, waiting.has_ended) == (None, None, "", False)


def test_jobs_that_go_on_come_first_then_failed_ones_and_the_newest_of_each_first() -> None:
    states = {"1": "COMPLETED", "2": "FAILED", "3": "COMPLETED", "4": "TIMEOUT", "5": "RUNNING", "6": "PENDING"}
    ends = {"5": "Unknown", "6": "Unknown"}
    found = newest_first(
        record(JobID=number, State=state, End=ends.get(number, f"17953719{number}0"))
        for number, state in states.items()
    )
    assert [one.job_id for one in found] == ["6", "5", "4", "2", "3", "1"]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["RUNNING"], ""),
        (["COMPLETED"], "COMPLETED"),
        (["COMPLETED", "CANCELLED by 0"], "COMPLETED"),
        (["CANCELLED"], "CANCELLED"),
        (["CANCELLED", "RUNNING"], ""),
        (["RUNNING", "FAILED"], "FAILED"),
        (["COMPLETED", "PENDING"], ""),
        ([], ""),
    ],
)
def test_a_job_of_many_tasks_has_one_end(states: list[str], expected: str) -> None:
    assert outcome(states) == expected


@pytest.mark.parametrize(
    ("line", "script", "expected"),
    [
        ("sbatch ./a.sbatch", [], "/fsx/jobs/a b/slurm-7.out"),
        ("sbatch -o out-%j-%x.txt ./a.sbatch -o no", [], "/fsx/jobs/a b/out-7-train.txt"),
        ("sbatch --output=/fsx/%5j/%N-%u.out a.sbatch", [], "/fsx/00007/ip-10-1-0-11-ubuntu.out"),
        ("sbatch --requeue -N 2 a.sbatch", ["#SBATCH --output=x-%A.out # why"], "/fsx/jobs/a b/x-7.out"),
        ("sbatch a.sbatch", ["#SBATCH -o 'a %%.out'", "#SBATCH -D /fsx/here"], "/fsx/jobs/a b/a %.out"),
        ("sbatch -D /there a.sbatch", ["#SBATCH --chdir=/here", '#SBATCH -J "unclosed'], "/fsx/jobs/a b/slurm-7.out"),
    ],
)
def test_the_output_of_a_forgotten_job_is_found_as_sbatch_places_it(
    line: str, script: list[str], expected: str
) -> None:
    one = record(SubmitLine=line)
    assert output_files(one, submission=parse_submission(line), script=script) == [expected]


def test_a_task_of_an_array_has_its_own_output() -> None:
    one = record(JobID="7_3", SubmitLine="sbatch a.sbatch")
    assert output_files(one, submission=parse_submission(one.submit_line), script=[]) == ["/fsx/jobs/a b/slurm-7_3.out"]


@pytest.mark.parametrize(
    ("line", "script", "expected"),
    [
        ("sbatch -e %x.err a.sbatch", [], ["slurm-7.out", "train.err"]),
        ("sbatch a.sbatch", ["#SBATCH --output=o-%j --error=e-%j"], ["o-7", "e-7"]),
        ("sbatch --error=same a.sbatch", ["#SBATCH -o same"], ["same"]),
    ],
)
def test_error_output_of_its_own_is_found_too(line: str, script: list[str], expected: list[str]) -> None:
    found = output_files(record(SubmitLine=line), submission=parse_submission(line), script=script)
    assert found == [f"/fsx/jobs/a b/{name}" for name in expected]


def test_a_job_file_with_spaces_is_among_those_that_are_looked_for() -> None:
    assert parse_submission("sbatch --parsable -N2 ./a b.sbatch one").scripts[:2] == ("./a", "./a b.sbatch")


def test_what_the_controller_still_knows_is_taken_from_it() -> None:
    shown = (
        "JobId=7 JobName=x\n   BatchHost=ip-1\n   StdErr=/fsx/e\n   StdOut=/fsx/my job/a.out\n\n"
        "JobId=8\n   StdErr=/fsx/my job/a.out\n   StdOut=/fsx/my job/a.out\n"
    )
    assert parse_scontrol(shown) == [("/fsx/my job/a.out", "ip-1"), ("/fsx/e", "ip-1"), ("/fsx/my job/a.out", "")]


def test_a_row_has_times_in_utc_and_spans_as_squeue_writes_them() -> None:
    assert row(record(ElapsedRaw="90061"), last_lines=[]).elapsed == "1-01:01:01"
    assert row(record(), last_lines=[]).ended == "2026-11-22T18:25:15Z"


def test_a_job_that_wanted_sudo_is_told_where_it_can_have_it() -> None:
    failed = record(State="FAILED", ExitCode="1:0")
    refused = 'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.'
    assert "holdfast submit --user root" in row(failed, last_lines=["begin", refused]).hint
    assert row(failed, last_lines=["begin", "sudo: a password is required"]).hint == ""


def test_ended_tasks_of_an_array_are_one_row_for_each_state_and_reason() -> None:
    states = dict.fromkeys(("28_0", "28_1", "28_2", "28_4"), "COMPLETED") | {
        "28_3": "TIMEOUT", "28_5": "RUNNING", "28_6": "RUNNING", "29_0": "COMPLETED", "30": "COMPLETED",
    }  # fmt: skip
    found = [row(record(JobID=job_id, State=state), last_lines=[]) for job_id, state in states.items()]
    assert [(one.job_id, one.state) for one in folded(found)] == [
        ("28_[0-2,4]", "COMPLETED"),
        ("28_3", "TIMEOUT"),
        ("28_5", "RUNNING"),
        ("28_6", "RUNNING"),
        ("29_0", "COMPLETED"),
        ("30", "COMPLETED"),
    ]


def test_a_folded_row_has_only_what_its_tasks_share_and_the_last_end() -> None:
    first = record(JobID="28_0", ElapsedRaw="5", NodeList="ip-10-1-0-11", End="1795371990")
    second = record(JobID="28_1", ElapsedRaw="6", NodeList="ip-10-1-0-11", End="1795371999")
    (one,) = folded([row(first, last_lines=[]), row(second, last_lines=[])])
    assert (one.elapsed, one.nodes, one.ended) == ("", "ip-10-1-0-11", row(second, last_lines=[]).ended)


def test_a_failed_task_keeps_its_last_lines() -> None:
    failed = [row(record(JobID=f"28_{task}", State="FAILED"), last_lines=["Killed"]) for task in (0, 1)]
    assert folded(failed) == failed
