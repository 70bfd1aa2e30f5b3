"""Ten stalls, each as its collectors report it: the culprit or the reason is named, with node and process."""

from collections.abc import Sequence
from typing import Any

import pytest
from diagnosing import NOW_S, REDUCE, SPIN, VOTE, found, pending, plain, process, rank

from holdfast.cli.diagnosis import (
    Diagnosis,
    DrainedNode,
    Evidence,
    FailureSeen,
    Frame,
    Holder,
    Output,
    Pace,
    PendingJob,
    Process,
    diagnose,
)


def culprit(diagnosis: Diagnosis) -> tuple[str, int | None, str, int | None]:
    (one,) = diagnosis.culprits
    assert diagnosis.verdict == "at-fault"
    assert diagnosis.summary == one.text
    return one.kind, one.rank, one.node, one.pid


def test_a_rank_that_a_signal_stopped_is_named_at_once() -> None:
    stopped = rank(1, own={"states": "TTT"}, phase="forward", silent_s=2.0, stack=(), asked=True)
    one = found(rank(0), stopped, rank(2), pace=Pace(step=40, usual_s=0.5, age_s=2.0))

    assert culprit(one) == ("stopped", 1, "ip-10-1-0-11", 101)
    assert [each.rank for each in one.waiting] == [0, 2]
    assert one.next == ["the launcher kills it after 10 s of standing stopped"]
    assert "kill -CONT" in one.summary


def test_a_rank_that_the_kernel_holds_is_named_with_the_function_of_the_kernel() -> None:
    held = rank(1, own={"states": "DDD", "waits_in": "folio_wait_bit_common"}, phase="forward", stack=())
    one = found(rank(0), held, rank(2))

    assert culprit(one) == ("held", 1, "ip-10-1-0-11", 101)
    assert "in folio_wait_bit_common (state D)" in one.summary


def test_a_rank_that_loops_in_python_is_named_with_its_line() -> None:
    loops = rank(1, own={"states": "RRR", "waits_in": "0", "cpu": 0.99}, phase="forward", stack=SPIN)
    one = found(rank(0), loops, rank(2))

    assert culprit(one) == ("loop", 1, "ip-10-1-0-11", 101)
    assert "train.py:31 in spin" in one.summary
    assert one.stacks[0].frames == ["spin (/fsx/jobs/7/train.py:31)"]
    assert one.stands_since == "2027-01-15T07:59:15Z"
    assert one.last_step == "step 40 finished 45 s ago; usual 0.5 s, longest 2.0 s"


def test_a_loop_in_native_code_differs_from_one_in_python() -> None:
    missing = "the rank did not answer its launcher"
    loops = rank(1, own={"states": "RRR", "cpu": 1.0}, phase="forward", stack=(), no_stack=missing, asked=True)
    one = found(rank(0), loops, rank(2))

    assert culprit(one) == ("loop-in-c", 1, "ip-10-1-0-11", 101)
    assert "native code" in one.summary
    assert one.stacks[0].missing == missing


@pytest.mark.parametrize("worker", ["SSS", "TTT", "DDD"])
def test_a_rank_whose_data_loader_gives_nothing_is_named_with_the_worker(worker: str) -> None:
    loader = (Frame(function="_try_get_data", file="/x/site-packages/torch/utils/data/dataloader.py", line=1275),)
    waits = rank(1, own={"waits_in": "do_poll"}, phase="other", stack=loader, workers=[process(777, states=worker)])
    one = found(rank(0), waits, rank(2))

    assert culprit(one) == ("loader", 1, "ip-10-1-0-11", 101)
    assert "777" in one.summary


def test_a_checkpoint_to_a_full_disk_names_rank_and_file_system() -> None:
    save = (Frame(function="save", file="/x/site-packages/torch/serialization.py", line=9),)
    writes = rank(0, own={"states": "SSS"}, phase="other", stack=save)
    one = found(writes, rank(1), rank(2), full=["ip-10-1-0-10:/fsx: 100.0 % used"])

    assert culprit(one) == ("disk-full", 0, "ip-10-1-0-10", 100)
    assert "/fsx: 100.0 % used" in one.summary


def test_a_write_that_failed_for_a_full_disk_is_the_first_error() -> None:
    error = FailureSeen(text="OSError: [Errno 28] No space left on device", rank="0", node="ip-10-1-0-10")
    one = found(failures=[error], output=Output(age_s=60.0), pace=Pace())

    assert one.verdict == "at-fault"
    assert one.summary == "rank 0 on ip-10-1-0-10: OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(("stack", "phase"), [(VOTE, "vote"), (SPIN, "other")])
def test_a_rank_that_never_enters_the_collective_of_the_others_is_named_not_those_that_wait(
    stack: Sequence[Frame], phase: str
) -> None:
    waiting = [rank(number, phase="forward", stack=REDUCE) for number in (0, 2)]
    one = found(waiting[0], rank(1, phase=phase, stack=stack), waiting[1])

    assert culprit(one)[1:] == (1, "ip-10-1-0-11", 101)
    assert [each.rank for each in one.waiting] == [0, 2]


def test_of_two_ranks_the_one_that_left_the_collective_out_is_named() -> None:
    one = found(rank(0, phase="forward", stack=REDUCE), rank(1, phase="vote", stack=VOTE))

    assert culprit(one)[:2] == ("never-entered", 1)
    assert "train.py:22 in main" in one.summary


def test_a_job_that_waits_for_capacity_names_the_jobs_that_have_the_nodes() -> None:
    holders = [Holder(job="5", nodes=2, ends_s=3600.0)]
    one = pending(
        "Resources", "the nodes that it needs are in use", holders=holders, usable=3, requested=2, starts_s=1200.0
    )

    assert (one.verdict, one.culprits) == ("waits", [])
    assert "by job 5" in one.summary
    assert "job 5 has 2 nodes, until its time limit in 1 h 00 min" in one.reason
    assert one.next == ["Slurm expects to start it in 20 min 00 s"]


@pytest.mark.parametrize("name", ["Resources", "ReqNodeNotAvail", "Nodes required for job are DOWN"])
def test_a_job_that_waits_for_a_drained_node_names_it_with_its_reason(name: str) -> None:
    drained = [DrainedNode(node="ip-10-1-0-12", state="idle+drain", reason="bad DIMM", by="root")]
    one = pending(name, "required nodes are down", drained=drained, usable=1, requested=2)

    assert [(each.kind, each.node) for each in one.culprits] == [("drained", "ip-10-1-0-12")]
    assert one.summary == "node ip-10-1-0-12 is idle+drain: bad DIMM (set by root)"


def test_an_image_that_cannot_be_pulled_is_named_with_its_pod() -> None:
    words = 'ImagePullBackOff: Back-off pulling image "team/train:9"'
    one = diagnose(
        Evidence(
            job="team/x", state="Pending", pending=[PendingJob(name="ImagePullBackOff", words=words, place="pod x-0")]
        ),
        now_s=NOW_S,
    )

    assert [(each.kind, each.text) for each in one.culprits] == [("image", f"pod x-0: {words}")]
    assert one.next == ["the kubelet retries the pull, at most 5 min apart"]


def test_a_node_that_does_not_answer_comes_first() -> None:
    one = found(rank(0), rank(2), world_size=3, silent_nodes={"ip-10-1-0-11": "it did not end within 8 s"})

    assert [(each.kind, each.node) for each in one.culprits] == [("silent-node", "ip-10-1-0-11")]


@pytest.mark.parametrize(
    ("own", "workers", "kind"),
    [
        ({"states": "TTT"}, [], "stopped"),
        ({"states": "DDD", "waits_in": "rpc_wait_bit_killable"}, [], "held"),
        ({"states": "RRR", "waits_in": "0", "cpu": 1.0}, [], "loop"),
        ({"waits_in": "pipe_read"}, [Process(pid=5, name="pt_data_worker", states="SSS")], "loader"),
        ({"waits_in": "do_poll.constprop.0"}, [Process(pid=5, name="pt_data_worker", states="SSS")], "loader"),
        ({"waits_in": "inet_csk_accept"}, [], "never-entered"),
        ({"waits_in": "hrtimer_nanosleep"}, [], "sleeps"),
    ],
)
def test_a_rank_of_torchrun_is_named_by_proc_alone(own: dict[str, Any], workers: list[Process], kind: str) -> None:
    silent = Output(lines=["step 12 loss 3.1"], age_s=40.0)
    one = found(
        plain(0), plain(1, own=own, workers=workers), plain(2), pace=Pace(age_s=40.0), output=silent, deadlines={}
    )

    assert culprit(one)[:3] == (kind, 1, "n1")
    assert [each.rank for each in one.waiting] == [0, 2]
    assert one.stacks[0].missing == "py-spy is not installed on this node"
    assert "nothing acts by itself" in one.next[0]


def test_ranks_that_all_wait_without_a_stack_are_not_said_to_be_in_one_collective() -> None:
    one = found(plain(0), plain(1), pace=Pace(age_s=200.0, usual_s=1.6, by_output=True))

    assert (one.verdict, one.culprits) == ("unknown", [])
    assert "py-spy" in one.summary
    assert "collective" not in one.summary
