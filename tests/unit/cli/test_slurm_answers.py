"""
What Slurm 22.05, 24.11 and 26.05 answered, read by those who use it.

tests/cases/slurm holds answers of real daemons. Of seven nodes, the first was marked Action:Replace and has a comment,
the second was marked while it was in a maintenance reservation, the third was drained by a person, the fourth was
marked Action:Reboot while a job ran on it. In ``nodes-silent`` the slurmd of these and of the fifth was killed; then
the fifth was marked (``nodes-marked-late``), and those of the first and the third were started again (``nodes-back``).
"""

from pathlib import Path

import pytest

from holdfast.cli.deployed import parse_scontrol
from holdfast.cli.slurm import JobRecord, parse_squeue
from holdfast.localcloud.hyperpod.slurm import mark_of
from holdfast_agent.lending import parse_free, parse_queue
from holdfast_agent.remedies import foreign_reason
from holdfast_agent.slurm import SlurmNode, parse_nodes
from holdfast_common import slurm_answers

CASES = Path(__file__).parents[2] / "cases" / "slurm"
VERSIONS = sorted(path.name for path in CASES.iterdir())
ALONE, RESERVED, DRAINED, BUSY, LOST, COMMENTED, WORKING = (f"ip-10-1-0-{number}" for number in range(11, 18))
MARKED = "Action:Replace"


def answer(version: str, name: str) -> str:
    """What was recorded; the column JobID of squeue.txt was added by hand."""
    return (CASES / version / f"{name}.txt").read_text()


def nodes(version: str, name: str) -> dict[str, SlurmNode]:
    found = {node.name: node for node in parse_nodes(answer(version, name))}
    assert sorted(found) == [ALONE, RESERVED, DRAINED, BUSY, LOST, COMMENTED, WORKING]
    return found


def marks(version: str, name: str) -> dict[str, str]:
    return {node.name: mark_of(node) for node in nodes(version, name).values() if mark_of(node)}


@pytest.mark.parametrize("version", VERSIONS)
def test_recordings_are_of_the_version_that_their_folder_names(version: str) -> None:
    assert answer(version, "version").startswith(f"slurm-wlm {version}.")


@pytest.mark.parametrize("version", VERSIONS)
def test_marked_nodes_are_taken_once_no_job_is_on_them_also_in_a_reservation(version: str) -> None:
    assert marks(version, "nodes-marked") == {ALONE: "replace", RESERVED: "replace"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_marked_node_that_stops_responding_is_taken_and_one_drained_by_a_person_is_left_alone(version: str) -> None:
    taken = {ALONE: "replace", RESERVED: "replace", BUSY: "reboot", LOST: "unresponsive"}
    assert marks(version, "nodes-silent") == taken
    assert marks(version, "nodes-marked-late") == {**taken, LOST: "replace"}
    assert marks(version, "nodes-back") == {**taken, LOST: "replace"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_agent_of_a_node_reads_the_same(version: str) -> None:
    silent = nodes(version, "nodes-silent")
    assert [silent[name].request for name in (ALONE, RESERVED, BUSY)] == ["replace", "replace", "reboot"]
    assert silent[LOST].request == silent[DRAINED].request == ""
    assert foreign_reason(silent[LOST]) == "", "Slurm's own words are nobody's"
    assert "bad fan; see the rack" in foreign_reason(silent[DRAINED])
    assert "(root), which is not ours" in foreign_reason(silent[ALONE])
    assert silent[ALONE].is_lost
    assert not nodes(version, "nodes-back")[ALONE].is_lost


@pytest.mark.parametrize("version", VERSIONS)
def test_what_slurm_appends_is_kept_apart_from_the_reason_that_was_given(version: str) -> None:
    silent, appended = nodes(version, "nodes-silent"), "" if version == "22.05" else " : Not responding"
    assert (silent[ALONE].reason, silent[ALONE].given_reason) == (f"{MARKED}{appended}", MARKED)
    assert silent[DRAINED].reason == f"bad fan; see the rack{appended}"


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_behind_reason_and_comment_are_no_part_of_them(version: str) -> None:
    marked = nodes(version, "nodes-marked")
    assert (marked[ALONE].reason, marked[ALONE].reason_by) == (MARKED, "root")
    assert marked[ALONE].comment == "a rack; holdfast-remedy:asked:replace:1763"
    assert (marked[RESERVED].reason, marked[RESERVED].comment) == (MARKED, "a rack with a fan")
    assert marked[COMMENTED].comment == "only a comment=of a person"
    assert (marked[COMMENTED].reason, marked[COMMENTED].reason_by) == ("", "")


@pytest.mark.parametrize("version", VERSIONS)
def test_states_of_nodes_are_read(version: str) -> None:
    marked = nodes(version, "nodes-marked")
    assert [marked[name].base for name in (ALONE, BUSY, WORKING)] == ["IDLE", "MIXED", "ALLOCATED"]
    assert [name for name, node in marked.items() if node.usable] == [LOST, COMMENTED, WORKING]
    assert [name for name, node in marked.items() if not node.free] == [BUSY, WORKING]
    assert not nodes(version, "nodes-silent")[LOST].registered


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue_has_the_exit_codes_of_jobs(version: str) -> None:
    jobs: dict[str, JobRecord] = {one.name: one for one in parse_squeue(answer(version, "squeue"))}
    assert (jobs["fails"].exit_code, jobs["fails"].exit_signal, jobs["fails"].why) == (3, 0, "exit code 3")
    assert (jobs["by signal"].exit_code, jobs["by signal"].exit_signal) == (0, 9)
    assert jobs["by signal"].why == "ended by signal 9 (SIGKILL)"
    assert (jobs["waits"].started_s, jobs["waits"].why) == (None, "waits: its start time is in the future (BeginTime)")
    assert jobs["on a marked node"].nodes == BUSY


@pytest.mark.parametrize("version", VERSIONS)
def test_the_queue_and_free_nodes_are_read_for_lending(version: str) -> None:
    queue = {one.name: one for one in parse_queue(answer(version, "squeue-lending"))}
    assert [(queue[name].state, queue[name].sizes) for name in ("5_0", "5_1")] == [
        ("RUNNING", (2, 3)),
        ("PENDING", (2, 3)),
    ]
    assert parse_free(answer(version, "sinfo-lending")) == {"dev": 2}


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_of_jobs_are_read(version: str) -> None:
    jobs = {one["JobId"]: one for one in slurm_answers.parse_jobs(answer(version, "jobs"))}
    assert (jobs["2"]["JobState"], jobs["2"]["ExitCode"], jobs["2"]["NodeList"]) == ("FAILED", "3:0", WORKING)
    tasks = {one["ArrayTaskId"]: one["JobState"] for one in jobs.values() if one.get("ArrayJobId") == "5"}
    assert tasks == {"0": "RUNNING", "1": "PENDING"}
    assert parse_scontrol(answer(version, "jobs-multiline")) == [("/fsx/jobs/2.out", WORKING)]


def test_a_name_or_a_command_of_a_job_changes_none_of_its_fields() -> None:
    line = "JobId=7 JobName=x NodeList=other Command= JobState=RUNNING NodeList=n1 Command=./a.sh NodeList=other\n"
    (job,) = slurm_answers.parse_jobs(line)
    assert job.get("NodeList") != "other" or "JobState" not in job


@pytest.mark.parametrize(
    ("tail", "reason", "comment"),
    [
        (" Reason=Action:Replace [root@x] Topology=hyperpod:rack InstanceId=i-1", MARKED, ""),
        (" Comment=one Reason=Action:Replace [root@x]", MARKED, "one"),
        (" Reason=first line Comment=kept", "first line", "kept"),
        (" Reason=a [b] c [root@2026-11-28T12:00:00] Extra=e", "a [b] c", ""),
    ],
)
def test_order_and_number_of_the_last_fields_do_not_matter(tail: str, reason: str, comment: str) -> None:
    (node,) = parse_nodes(f"NodeName=n1 State=IDLE+FAIL BootTime=2026-11-28T12:00:00 AveWatts=0{tail}\n")
    assert (node.reason, node.comment) == (reason, comment)


@pytest.mark.parametrize(
    ("text", "exit_"),
    [("3:0", (3, 0)), ("0:9", (0, 9)), ("768", (3, 0)), ("9", (0, 9)), ("", (0, 0)), ("N/A", (0, 0)), ("1:x", (0, 0))],
)
def test_exit_codes_are_read_as_any_version_writes_them(text: str, exit_: tuple[int, int]) -> None:
    assert slurm_answers.parse_exit(text) == exit_


def test_a_job_that_is_expedited_waits_to_be_started_again() -> None:
    assert {"PENDING", "EXPEDITING"} <= slurm_answers.BEFORE_START <= slurm_answers.WAITING
