"""What became of a job, in words: reasons of Slurm, the first traceback, and the names of parts and tasks."""

import dataclasses

import pytest
from accounting import sacct_line

from holdfast.cli.deployed import expand_job_id, parse_slurm, row
from holdfast.cli.slurm import JobRecord, first_failure, named_error, parse_sacct, step_files, waits
from holdfast.cli.terminal import CommandError

LABELLED = """0: starting
1: Traceback (most recent call last):
0: Traceback (most recent call last):
1:   File "bad.py", line 4, in f
0:   File "bad.py", line 9, in g
1:     raise ValueError("bad shape")
0: RuntimeError: connection closed by peer
1: ValueError: bad shape
srun: error: ip-10-1-0-11: task 0: Exited with exit code 1
srun: error: ip-10-1-0-12: tasks 1,3-5: Exited with exit code 1
slurmstepd: error: *** STEP 14.0 ON ip-10-1-0-11 CANCELLED ***
"""
TORCHRUN = """[rank3]: Traceback (most recent call last):
[rank3]:   File "train.py", line 7, in <module>
[rank3]:     main()
[rank3]: torch.OutOfMemoryError: CUDA out of memory.
E1128 16:34:41 torch/distributed/elastic/multiprocessing/api.py: failed (exitcode: 1) local_rank: 1
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_16:34:41
  host      : ip-10-1-0-12
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 77)
"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    raise SystemError("no x")
SystemError: no x
Traceback (most recent call last):
  File "later.py", line 3, in <module>
OSError: later
"""


def record(**changes: str) -> JobRecord:
    failed = {"State": "FAILED", "ExitCode": "1:0", "NodeList": "ip-10-1-0-11", "WorkDir": "/fsx/jobs/a"}
    return parse_sacct(sacct_line(**{**failed, "Start": "10", "End": "12", **changes}))[0]


@pytest.mark.parametrize(
    ("text", "where", "error"),
    [
        (LABELLED, "rank 1 on ip-10-1-0-12", "ValueError: bad shape"),
        (TORCHRUN, "rank 3 on ip-10-1-0-12", "torch.OutOfMemoryError: CUDA out of memory."),
        (CHAINED, "ip-10-1-0-11", "SystemError: no x"),
    ],
)
def test_the_first_traceback_is_found_with_its_rank_and_host(text: str, where: str, error: str) -> None:
    found = first_failure(text.splitlines(), host="ip-10-1-0-11" if text == CHAINED else "")
    assert found is not None
    assert (found.where, found.error, found.lines[-1]) == (where, error, error)
    assert row(record(), last_lines=[], failure=found).why == f"exit code 1: {where}: {error}"


@pytest.mark.parametrize("text", ["", "done\n", "1: starting\n"])
def test_output_without_a_traceback_has_no_failure(text: str) -> None:
    assert first_failure(text.splitlines()) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("step 1\npyxis: couldn't start container\nsrun: error: a: task 0: Exited with exit code 1", "pyxis: couldn't"),
        ("srun: error: Unable to create step for job 7: Invalid node name\n", "srun: error: Unable to create step"),
        ("loading\nsrun: error: a: task 0: Exited with exit code 1\n", ""),
    ],
)
def test_without_a_traceback_the_first_line_that_names_an_error_says_why(text: str, error: str) -> None:
    found = named_error(text.splitlines())

    assert found.startswith(error)
    assert bool(found) == bool(error)


def test_a_traceback_that_is_cut_off_is_still_one() -> None:
    found = first_failure(["Traceback (most recent call last):", '  File "a.py", line 1'])
    assert found is not None
    assert found.lines[-1] == '  File "a.py", line 1'


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PartitionConfig", "it requests more than the nodes of its partition have; see on a node: sinfo -Nel"),
        ("PartitionNodeLimit", "it requests more nodes than its partition has up; see: holdfast status"),
        ("JobHeldUser", "it is held; release it on a node with: scontrol release 7"),
        ("QOSMaxNodePerUserLimit", "a limit of its QOS is reached; see on a node: sacctmgr show qos"),
        ("AssocGrpCpuLimit", "a limit of its account or user is reached; see on a node: sacctmgr show assoc"),
    ],
)
def test_a_job_that_waits_says_why_in_words_and_by_slurms_own_name(reason: str, words: str) -> None:
    assert waits(reason, job="7") == f"waits: {words} ({reason})"


def test_a_reason_without_words_is_shown_as_it_is() -> None:
    assert waits("SomethingNew", job="7") == "waits: SomethingNew"
    assert waits("None", job="7") == ""


def test_unavailable_nodes_are_named() -> None:
    said = waits("ReqNodeNotAvail, UnavailableNodes:ip-10-1-0-[11-12]", job="7")
    assert said.endswith("(unavailable: ip-10-1-0-[11-12]) (ReqNodeNotAvail)")
    said = waits("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority", job="7")
    assert said.startswith("waits: required nodes are down, drained or reserved; see: holdfast status (")


def test_the_status_names_the_nodes_that_take_no_job() -> None:
    nodes = "N|ip-10-1-0-11|idle|none\nN|ip-10-1-0-12|down*|x\nN|ip-10-1-0-13|drained|x\n"
    _, (job,) = parse_slurm(nodes + "J|7|PENDING||0:00|ReqNodeNotAvail|train\n")
    assert job.reason == (
        "a requested node is down, drained or reserved; ip-10-1-0-12 is down, ip-10-1-0-13 is drained (ReqNodeNotAvail)"
    )


def test_a_job_that_could_not_open_its_output_says_so() -> None:
    assert "output file or working folder cannot be opened" in record(ExitCode="0:53").why
    assert record(NodeList="").why == "never ran: sbatch refused it and printed the reason"


@pytest.mark.parametrize("changes", [{"ExitCode": "15:0"}, {"ExitCode": "0:15"}])
def test_a_spare_that_its_launcher_released_is_no_failure(changes: dict[str, str]) -> None:
    spare = record(JobName="holdfast-spare-42", **changes)
    assert (spare.state, spare.has_failed) == ("CANCELLED", False)
    assert spare.why == "spare node of job 42, released by its launcher"
    assert record(JobName="holdfast-spare-42").has_failed
    assert record(JobName="train", **changes).has_failed


def test_a_spare_that_was_merged_into_its_job_ended_when_it_was() -> None:
    remembered = sacct_line(
        JobName="holdfast-spare-42", State="RESIZING", Start="10", End="10", ElapsedRaw="0", NodeList="None assigned"
    )
    (one,) = parse_sacct(remembered)
    assert (one.state, one.has_ended, one.ended_s, one.elapsed_s) == ("COMPLETED", True, 10, 0)
    assert one.why == "spare node of job 42, merged into it"
    live = dataclasses.replace(one, started_s=12, ended_s=31_536_000, elapsed_s=31_536_000).settled()
    assert (live.ended_s, live.elapsed_s) == (12, 0), "squeue has the time limit in its place"


def test_a_job_that_lost_a_node_and_went_on_is_one_job() -> None:
    two = sacct_line(State="RESIZING", Start="10", End="20", ElapsedRaw="10", NodeList="ip-10-1-0-[11-12]")
    one = sacct_line(State="COMPLETED", Start="20", End="50", ElapsedRaw="30", NodeList="ip-10-1-0-11")
    (found,) = parse_sacct(f"{two}\n{one}")
    assert (found.state, found.started_s, found.ended_s, found.elapsed_s) == ("COMPLETED", 10, 50, 40)


@pytest.mark.parametrize(
    ("line", "name", "matching", "other"),
    [
        ("srun --het-group=0,1 --output %j_%t_log.out hostname", "7", "7_0_log.out", "8_0_log.out"),
        ("srun -l -o out-%J-%N.txt python x.py -o no", "7", "out-7.0-ip-10-1-0-11.txt", "no"),
        ("srun --unbuffered --output=/fsx/logs/%A_%a_%t.out sh", "7_3", "7_3_11.out", "7_2_0.out"),
        ("srun --exact --output=%t.log sh", "7", "3.log", "3.out"),
        ("srun -n4 --multi-prog --compress -q high --resv-ports -o %t.log a.conf", "7", "3.log", "a.conf"),
        ("/usr/bin/srun --container-mount-home --error e[x]-%2t.err true", "7", "e[x]-00.err", "ex-00.err"),
    ],
)
def test_files_that_steps_have_of_their_own_are_known_by_the_words_of_srun(
    line: str, name: str, matching: str, other: str
) -> None:
    (files,) = step_files(line, record=record(JobID=name), step="0")
    assert files.folder == ("/fsx/logs" if "/fsx" in line else "/fsx/jobs/a")
    assert files.name.fullmatch(matching)
    assert not files.name.fullmatch(other)


@pytest.mark.parametrize(
    "line", ["srun hostname", "srun --output=none true", "sbatch -o x a.sbatch", "srun true -o x", ""]
)
def test_a_step_without_a_file_of_its_own_has_none(line: str) -> None:
    assert step_files(line, record=record(), step="0") == []


def test_tasks_differ_in_folders_too() -> None:
    (files,) = step_files("srun -D logs --output=%j/%N/%t.out true", record=record(), step="0")
    assert (files.folder, files.depth) == ("/fsx/jobs/a/logs/7", 2)
    assert files.name.fullmatch("ip-10-1-0-11/3.out")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("7", ["7"]),
        ("7_3", ["7_3"]),
        ("9+1", ["9+1"]),
        ("7_[0-2,5%1]", ["7_0", "7_1", "7_2", "7_5"]),
        ("7_[0-4:2]", ["7_0", "7_2", "7_4"]),
    ],
)
def test_every_name_that_is_printed_is_taken(name: str, expected: list[str]) -> None:
    assert expand_job_id(name) == expected


@pytest.mark.parametrize("name", ["9+", "+1", "7_[a]", "7_[]", "7_[1-", "9+1;id"])
def test_what_is_no_name_of_a_job_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="allowed: "):
        expand_job_id(name)
