"""Decisions for a job, from its pods and nodes."""

from typing import Any

import pytest
from operated_jobs import NOW_S, ended, job, nodes, pod, pods

from holdfast_operator.decisions import Action, CreatePod, Decision, DeleteJob, DeletePod, NodeFacts, PodFacts, decide
from holdfast_operator.jobs import Job

PENDING_REPLACEMENT = NodeFacts(health="UnschedulablePendingReplacement")
START = {"startTime": "1970-01-01T00:10:00Z", "wholeTime": "1970-01-01T00:10:10Z"}


def decided(of: Job, there: list[PodFacts], *, at_s: float = NOW_S, **changed: NodeFacts) -> Decision:
    return decide(of, pods=there, nodes=nodes(**changed), now_s=at_s)


def short(actions: tuple[Action, ...]) -> list[str]:
    words = {CreatePod: "create", DeletePod: "delete", DeleteJob: "delete job"}
    return [f"{words[type(one)]} {getattr(one, 'index', '')}".strip() for one in actions]


def test_a_new_job_gets_all_of_its_pods() -> None:
    found = decided(job(), [])
    assert short(found.actions) == ["create 0", "create 1", "create 2", "create 3"]
    assert (found.status.state, found.status.started_s) == ("Pending", NOW_S)


def test_a_job_at_strength_is_left_alone() -> None:
    found = decided(job(), pods(job()))
    assert found.actions == ()
    assert (found.status.state, found.status.nodes, found.status.whole_s) == ("Running", 4, NOW_S)
    condition = found.status.condition("Running")
    assert condition is not None
    assert condition.message == "4 of 4 pods run; 3 nodes train"


def test_a_pod_that_was_deleted_is_created_again_under_its_index_and_no_other_is_touched() -> None:
    assert short(decided(job(), pods(job(), without=(1,))).actions) == ["create 1"]


def test_a_pod_that_is_being_deleted_keeps_its_index_until_it_is_gone() -> None:
    assert decided(job(), pods(job(), pod(job(), 1, is_deleted=True))).actions == ()


def test_a_pod_of_a_node_that_does_not_exist_is_removed_without_its_kubelet() -> None:
    there = pods(job(), pod(job(), 1, node="lost", is_deleted=True))
    (action,) = decided(job(), there).actions
    assert action == DeletePod(index=1, uid="pod-1", why="node lost does not exist", is_forced=True)


def test_a_node_that_is_not_ready_keeps_its_pod() -> None:
    assert decided(job(), pods(job()), n1=NodeFacts(is_ready=False)).actions == ()


def test_a_pod_of_a_node_that_is_to_be_replaced_hands_its_ranks_over() -> None:
    (action,) = decided(job(), pods(job()), n1=PENDING_REPLACEMENT).actions
    assert action == DeletePod(index=1, uid="pod-1", why="node n1 is UnschedulablePendingReplacement")


def test_one_pod_at_a_time_hands_over() -> None:
    there = pods(job(), pod(job(), 2, is_deleted=True))
    assert decided(job(), there, n1=PENDING_REPLACEMENT).actions == ()


@pytest.mark.parametrize(
    "spare",
    [{"phase": "Pending", "node": ""}, {"started_s": NOW_S - 1}, {"node": "n9"}],
    ids=["pending", "cold", "ill"],
)
def test_no_pod_is_asked_to_leave_before_another_is_ready_for_its_ranks(spare: dict[str, Any]) -> None:
    there = pods(job(), pod(job(), 3, **spare))
    found = decided(job(), there, n1=PENDING_REPLACEMENT, n9=NodeFacts(is_ready=False))
    assert found.actions == ()


def test_a_pod_that_does_not_run_leaves_an_unhealthy_node_at_once() -> None:
    there = pods(job(), pod(job(), 1, phase="Pending"), without=(3,))
    assert short(decided(job(), there, n1=PENDING_REPLACEMENT).actions) == ["delete 1"]


def test_an_image_that_one_node_alone_cannot_pull_is_pulled_by_another() -> None:
    waits = pod(job(), 3, phase="Pending", waiting="ImagePullBackOff: no space", created_s=NOW_S - 130)
    found = decided(job(), pods(job(), waits))
    assert short(found.actions) == ["delete 3"]
    assert dict(found.status.excluded) == {"n3": "node n3 cannot pull the image: ImagePullBackOff: no space"}
    alone = [waits for waits in pods(job()) if waits.index == 3]
    assert short(decided(job(), [pod(job(), 3, phase="Pending", waiting="ErrImagePull", created_s=0)]).actions) == [
        "create 0", "create 1", "create 2"
    ], alone  # fmt: skip


def test_a_changed_template_is_refused_while_pods_of_the_previous_one_run() -> None:
    found = decided(job(processesPerNode=4), pods(job(), without=(1,)))
    assert found.actions == ()
    assert found.status.state == "Invalid"
    again = decided(job(status={"conditions": [{"type": "Invalid", "status": "True"}]}), pods(job()))
    assert again.status.state == "Running"


def test_suspension_deletes_all_pods_and_resumption_creates_them() -> None:
    found = decided(job(suspend=True, status=START), pods(job()))
    assert short(found.actions) == ["delete 0", "delete 1", "delete 2", "delete 3"]
    assert (found.status.state, found.status.started_s) == ("Suspended", None)
    status = {"conditions": [{"type": "Suspended", "status": "True"}]}
    assert short(decided(job(status=status), []).actions) == ["create 0", "create 1", "create 2", "create 3"]


def test_a_job_that_is_deleted_gets_no_pod() -> None:
    found = decide(_deleted(), pods=[], nodes=nodes(), now_s=NOW_S)
    assert found.actions == ()


def _deleted() -> Job:
    from dataclasses import replace

    return replace(job(), is_deleted=True)


@pytest.mark.parametrize(
    ("deadlines", "reason"),
    [({"startSeconds": 300}, "StartDeadline"), ({"activeSeconds": 300}, "ActiveDeadline"), ({}, "")],
)
def test_deadlines_end_a_job(deadlines: dict[str, int], reason: str) -> None:
    status = {"startTime": START["startTime"]}
    found = decided(job(deadlines=deadlines, status=status), pods(job(), without=(0, 1)))
    failed = found.status.condition("Failed")
    assert (failed.reason if failed else "") == reason


def test_a_job_that_was_whole_once_has_met_its_start_deadline() -> None:
    found = decided(job(deadlines={"startSeconds": 300}, status=START), pods(job(), without=(0, 1)))
    assert found.status.state != "Failed"


@pytest.mark.parametrize(
    ("since", "without", "fails"),
    [
        ("1970-01-01T00:11:40Z", (0, 1), True),
        ("1970-01-01T00:11:41Z", (0, 1), False),
        ("1970-01-01T00:11:40Z", (0,), False),
    ],
    ids=["300 s", "299 s", "enough nodes again"],
)
def test_a_fault_may_last_as_long_as_its_deadline(since: str, without: tuple[int, ...], fails: bool) -> None:
    known = {"type": "Running", "status": "False", "reason": "PodsPending", "lastTransitionTime": since}
    status = {**START, "conditions": [known]}
    found = decided(job(deadlines={"faultSeconds": 300}, status=status), pods(job(), without=without))
    assert (found.status.state == "Failed") is fails
    if fails:
        assert str(found.status.condition("Failed")).count("2 of at least 3 nodes run after a fault of 300 s") == 1
    suspended = {**status, "wholeTime": None}
    new = decided(job(deadlines={"faultSeconds": 300}, status=suspended), pods(job(), without=without))
    assert new.status.state != "Failed", "it has not had all nodes since it was resumed"


def test_an_ended_job_has_the_last_numbers_of_its_launchers() -> None:
    last = 'holdfast_step{node="0"} 400\nholdfast_steps{node="0"} 400\nholdfast_goodput_ratio{node="0"} 0.9\n'
    status = {"step": 308, "eta": "4s"}
    found = decided(job(status=status), [ended(job(), index, 0, last) for index in range(4)])
    assert (found.status.progress["step"], found.status.progress["goodput"]) == (400, "90.0 %")
    assert found.status.progress["eta"] is None


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "-3", "9" * 40, "x"])
def test_a_number_that_no_launcher_writes_is_no_progress(value: str) -> None:
    found = decided(job(), [ended(job(), index, 0, f'holdfast_step{{node="0"}} {value}\n') for index in range(4)])
    assert (found.status.state, found.status.progress) == ("Complete", {})


def test_no_pod_is_created_once_one_has_finished() -> None:
    there = pods(job(), ended(job(), 0, 0), without=(3,))
    found = decided(job(), there)
    assert (found.actions, found.status.finished_s) == ((), NOW_S)


def test_a_job_is_complete_when_no_pod_runs_any_more_and_keeps_its_pods_for_their_logs() -> None:
    there = [ended(job(), 0, 0), ended(job(), 1, 0), ended(job(), 2, 137)]
    found = decided(job(), there)
    assert (found.status.state, found.status.completed_s, found.actions) == ("Complete", NOW_S, ())


def test_a_pod_that_does_not_end_with_its_job_is_deleted() -> None:
    there = pods(job(), ended(job(), 0, 0), without=(3,))
    status = {"finishTime": "1970-01-01T00:15:00Z"}
    found = decided(job(status=status), there)
    assert found.status.state == "Complete"
    status = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "1970-01-01T00:15:00Z"}
    assert short(decided(job(status=status), there).actions) == ["delete 1", "delete 2"]


def test_a_pod_that_a_sidecar_keeps_on_its_node_is_deleted_with_its_jobs_end() -> None:
    there = pods(job(), *(ended(job(), index, 0, lingers=index == 1) for index in range(4)))
    found = decided(job(status=START), there)
    assert (found.status.state, found.actions) == ("Complete", ())
    status = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "1970-01-01T00:15:00Z"}
    assert short(decided(job(status=status), there).actions) == ["delete 1"]


def test_an_ended_job_is_deleted_after_its_time() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "1970-01-01T00:15:00Z"}
    assert decided(job(status=status, ttlSecondsAfterFinished=101), []).actions == ()
    assert short(decided(job(status=status, ttlSecondsAfterFinished=100), []).actions) == ["delete job"]
    assert decided(job(status=status), []).actions == ()


ELASTIC = {"size": 4, "min": 3, "max": 5}


def test_a_smaller_size_takes_one_pod_at_a_time_and_the_one_on_the_sick_node_first() -> None:
    five = job(nodes={**ELASTIC, "size": 5})
    four = job(nodes=ELASTIC)
    assert five.shape == four.shape
    assert short(decided(four, pods(five)).actions) == ["delete 4"]
    there = [pod(four, index) for index in range(5)]
    assert short(decided(four, there, n1=PENDING_REPLACEMENT).actions) == ["delete 1"]
    assert decided(four, [*there[:4], pod(four, 4, is_deleted=True)]).actions == ()


def test_a_larger_size_creates_the_missing_indices() -> None:
    five = job(nodes={**ELASTIC, "size": 5})
    there = [pod(five, index) for index in (0, 2, 4)]
    assert short(decided(five, there).actions) == ["create 1", "create 3"]


def test_an_elastic_job_gives_a_sick_node_up_without_a_spare() -> None:
    four = job(nodes=ELASTIC)
    assert short(decided(four, pods(four), n1=PENDING_REPLACEMENT).actions) == ["delete 1"]
    three = job(nodes={**ELASTIC, "size": 3})
    assert decided(three, pods(three), n1=PENDING_REPLACEMENT).actions == ()
