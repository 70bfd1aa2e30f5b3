"""Charges for failed pods, and the ladder of restarts: from the exit codes and last lines of holdfast-run."""

from dataclasses import replace
from typing import Any

import pytest
from operated_jobs import NOW_S, ended, job, nodes, pod, pods

from holdfast_operator.decisions import (
    CreatePod,
    Decision,
    DeletePod,
    NodeFacts,
    PodFacts,
    decide,
    failure_of,
    repeats,
    stop_of,
)
from holdfast_operator.jobs import Job, Status, Stop

RAISED = (
    "Traceback (most recent call last):\n"
    "the job ends: rank 9 of node 1 raised ValueError: <Batch object at 0x7f31> is empty (train.py:33) in step 40; "
    "2 processes raised in that step, which was tried 3 times: trying again does not help, see the traceback above"
)
WHAT = "ValueError: <Batch object at 0x...> is empty (train.py:33)"


def decided(of: Job, there: list[PodFacts], *, at_s: float = NOW_S, **changed: NodeFacts) -> Decision:
    return decide(of, pods=there, nodes=nodes(**changed), now_s=at_s)


def stored(status: Status) -> dict[str, Any]:
    return status.manifest(generation=1, selector="x")


@pytest.mark.parametrize(
    ("code", "changes", "kind"),
    [
        (75, {}, "handed over"),
        (143, {}, "node"),
        (137, {"reason": "Evicted"}, "node"),
        (137, {"node": "lost"}, "node"),
        (137, {"reason": "OOMKilled"}, "launcher"),
        (139, {}, "launcher"),
        (2, {"message": "holdfast-run: error: --spares is -1\n"}, "flags"),
        (1, {"message": RAISED}, "stopped"),
    ],
)
def test_a_failure_is_what_the_exit_code_of_the_launcher_means(code: int, changes: dict[str, Any], kind: str) -> None:
    assert failure_of(ended(job(), 1, code, **changes), nodes()).kind == kind


def test_a_node_that_is_lost_or_ill_is_the_reason_and_not_the_launcher() -> None:
    one = ended(job(), 1, 137)
    assert failure_of(one, nodes(n1=NodeFacts(is_ready=False))).kind == "node"
    assert failure_of(one, nodes(n1=NodeFacts(health="Unschedulable"))).kind == "node"


def test_a_failed_launcher_is_charged_once_and_its_pod_is_created_again() -> None:
    there = pods(job(), ended(job(), 1, 137, reason="OOMKilled"))
    first = decided(job(), there)
    assert [(one.index, one.uid) for one in first.actions] == [(1, "pod-1")]  # type: ignore[union-attr]
    assert first.status.launcher_restarts == 1
    second = decided(job(status=stored(first.status)), there)
    assert second.status.launcher_restarts == 1, "the operator was killed between its status and the deletion"
    third = decided(job(status=stored(second.status)), pods(job(), without=(1,)), at_s=NOW_S + 2)
    assert third.actions == (CreatePod(index=1),)
    assert third.status.counted == ()


@pytest.mark.parametrize(("restarts", "wait_s"), [(1, 1), (2, 2), (5, 16), (20, 60)])
def test_pods_are_created_again_after_a_delay_that_doubles(restarts: int, wait_s: int) -> None:
    status = {"restarts": {"launchers": restarts}, "lastFailureTime": "1970-01-01T00:16:40Z"}
    there = pods(job(), without=(1,))
    assert decided(job(status=status), there, at_s=NOW_S + wait_s - 0.5).actions == ()
    assert decided(job(status=status), there, at_s=NOW_S + wait_s).actions == (CreatePod(index=1),)


def test_hand_overs_and_lost_nodes_cost_neither_budget_nor_time() -> None:
    found = decided(job(recovery={"launcherRestarts": 0}), pods(job(), ended(job(), 1, 75)))
    assert (found.status.launcher_restarts, found.status.state) == (0, "Running")
    after = decided(job(status=stored(found.status)), pods(job(), without=(1,)))
    assert after.actions == (CreatePod(index=1),)


def test_the_budget_of_launchers_is_the_manifests() -> None:
    status: dict[str, Any] = {}
    for number in range(4):
        one = ended(job(), 1, 139, uid=f"try-{number}")
        found = decided(job(recovery={"launcherRestarts": 3, "nodeFailures": 0}, status=status), pods(job(), one))
        status = stored(found.status)
        assert found.status.state == ("Running" if number < 3 else "Failed")
    failed = found.status.condition("Failed")
    assert failed is not None
    assert failed.message == "launcher restarts: got 4; allowed: 3; the last one of pod 1: exit code 139"


def test_a_node_whose_launchers_fail_again_and_again_gets_no_more_pods() -> None:
    status: dict[str, Any] = {}
    for number in range(2):
        found = decided(job(status=status), pods(job(), ended(job(), 1, 139, uid=f"try-{number}", node="n7")))
        status = stored(found.status)
    assert dict(found.status.excluded) == {"n7": "2 failed launchers, the last one with exit code 139"}
    (action,) = decided(job(status=status), pods(job(), without=(1,)), at_s=NOW_S + 9).actions
    assert action == CreatePod(index=1, excluded=("n7",))


def test_excluded_nodes_are_allowed_again_if_the_job_would_wait_for_ever() -> None:
    status = {"excludedNodes": [{"node": "n7", "reason": "x"}]}
    waits = pod(job(), 1, phase="Pending", node="", waiting="Unschedulable: 0/4 nodes", created_s=NOW_S - 119)
    assert decided(job(status=status), pods(job(), waits)).actions == ()
    found = decided(job(status=status), pods(job(), waits), at_s=NOW_S + 1)
    assert [one.index for one in found.actions] == [1]  # type: ignore[union-attr]
    assert found.status.excluded == ()


def test_options_that_the_launcher_refuses_end_the_job_with_its_words() -> None:
    found = decided(job(), [ended(job(), 0, 2, "usage: ...\nholdfast-run: error: --spares is -1; allowed: 0 or more")])
    failed = found.status.condition("Failed")
    assert failed is not None
    assert failed.message == "holdfast-run: error: --spares is -1; allowed: 0 or more"


def test_a_launcher_that_stopped_alone_is_replaced_after_the_others_would_have_ended() -> None:
    there = pods(job(), ended(job(), 1, 1, "minority: no majority for 10 s"))
    assert decided(job(), there, at_s=NOW_S + 74).actions == ()
    found = decided(job(), there, at_s=NOW_S + 76)
    assert [one.index for one in found.actions] == [1]  # type: ignore[union-attr]
    assert (found.status.launcher_restarts, found.status.job_restarts) == (1, 0)


def all_ended(of: Job, message: str, *, node_1: str = "n1", run: int = 0) -> list[PodFacts]:
    places = ["n0", node_1, "n2", "n3"]
    return [
        ended(of, index, 1, message if index == 0 else "", node=place, uid=f"run-{run}-{index}")
        for index, place in enumerate(places)
    ]


def test_all_pods_are_created_again_when_all_launchers_have_ended() -> None:
    first = decided(job(), all_ended(job(), "the job ends: 26 generations in a row ended without a finished step"))
    assert [one.index for one in first.actions] == [0, 1, 2, 3]  # type: ignore[union-attr]
    assert (first.status.job_restarts, first.status.launcher_restarts) == (1, 0)
    again = decided(job(status=stored(first.status)), all_ended(job(), ""))
    assert (again.status.job_restarts, len(again.actions)) == (1, 4)
    after = decided(job(status=stored(again.status)), [], at_s=NOW_S + 1)
    assert len(after.actions) == 4


def test_the_reason_names_exception_step_and_the_node_of_the_rank() -> None:
    assert stop_of(all_ended(job(), RAISED)) == Stop(what=WHAT, step=40, node="n1")


def test_the_node_of_an_exception_is_exchanged_before_the_program_is_blamed() -> None:
    found = decided(job(), all_ended(job(), RAISED))
    assert dict(found.status.excluded) == {"n1": f"raised {WHAT} in step 40"}
    assert found.status.state != "Failed"


def test_the_same_exception_in_the_same_step_on_another_node_stops_the_job_and_names_it() -> None:
    first = decided(job(), all_ended(job(), RAISED))
    second = decided(job(status=stored(first.status)), all_ended(job(), RAISED, node_1="n8", run=1))
    failed = second.status.condition("Failed")
    assert failed is not None
    assert failed.reason == "ProgramFailed"
    assert failed.message == f"the program raised the same exception in step 40 on other nodes as well: {WHAT}"


@pytest.mark.parametrize(
    ("earlier", "same"),
    [
        (Stop(what=WHAT, step=40, node="n8"), True),
        (Stop(what=WHAT, step=40, node=""), True),
        (Stop(what=WHAT, step=40, node="n1"), False),
        (Stop(what=WHAT, step=41, node="n8"), False),
        (Stop(what="KeyError: 3", step=40, node="n8"), False),
        (Stop(what=WHAT, step=None, node="n8"), False),
    ],
)
def test_only_the_same_exception_in_the_same_step_on_another_node_is_evidence(earlier: Stop, same: bool) -> None:
    assert repeats(Stop(what=WHAT, step=40, node="n1"), [earlier]) is same


def test_the_budget_of_jobs_is_the_manifests() -> None:
    status: dict[str, Any] = {}
    for number in range(3):
        of = job(recovery={"jobRestarts": 2}, status=status)
        found = decided(of, all_ended(of, "the job ends: no copy of shard 3 is left", run=number))
        status = stored(found.status)
        assert (found.status.state == "Failed") is (number == 2)
    failed = found.status.condition("Failed")
    assert failed is not None
    assert failed.message == "restarts of all pods: got 3; allowed: 2; the last reason: no copy of shard 3 is left"


def test_a_status_is_read_as_it_was_written() -> None:
    found = decided(job(), all_ended(job(), RAISED)).status
    assert job(status=stored(found)).status == found


def test_a_pending_pod_does_not_keep_a_stopped_job_from_its_restart() -> None:
    there = [*all_ended(job(), RAISED)[:3], pod(job(), 3, phase="Pending", node="")]
    assert [one.index for one in decided(job(), there).actions] == [0, 1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize(("queue", "deleted"), [("", []), ("team", ["pod-0", "pod-1", "pod-2", "pod-3"])])
def test_ended_pods_are_kept_for_their_logs_but_not_in_the_quota_of_a_queue(queue: str, deleted: list[str]) -> None:
    of = replace(job(status={"conditions": [{"type": "Failed", "status": "True"}]}), queue=queue)
    found = decided(of, [ended(of, index, 1) for index in range(4)])
    assert [one.uid for one in found.actions if isinstance(one, DeletePod)] == deleted


def fails_each_time(times_s: list[float], **recovery: Any) -> list[str]:
    """A launcher fails at each time, and all pods are back before the next; return what the operator restarts."""
    found, status = [], {"startTime": "1970-01-01T00:00:00Z"}
    for number, at_s in enumerate(times_s):
        one = job(recovery={"nodeFailures": 0, **recovery}, status=status)
        there = pods(one, ended(one, 1, 139, uid=f"try-{number}"))
        decision = decided(one, there, at_s=at_s)
        deleted = [each.index for each in decision.actions if isinstance(each, DeletePod)]
        found.append("failed" if decision.status.has_ended else "all" if len(deleted) == 4 else f"pod {deleted[0]}")
        status = {**stored(decision.status), "restartingPods": []}
    return found


@pytest.mark.parametrize(
    ("times_s", "found"),
    [
        ([0, 10, 20, 30], ["pod 1", "pod 1", "all", "pod 1"]),
        ([0, 10, 100, 110], ["pod 1", "pod 1", "pod 1", "pod 1"]),
        ([0, 1, 2, 3, 4, 5], ["pod 1", "pod 1", "all", "pod 1", "pod 1", "failed"]),
        ([0, 1, 2, 103, 104, 105], ["pod 1", "pod 1", "all", "pod 1", "pod 1", "all"]),
    ],
    ids=["escalates", "another period", "fails", "fails not in another period"],
)
def test_restarts_of_launchers_lead_to_restarts_of_all_pods_and_those_to_the_end(
    times_s: list[float], found: list[str]
) -> None:
    assert fails_each_time(times_s, restartAllAfter=2, jobRestarts=1, periodSeconds=100) == found


def test_without_a_period_budgets_are_those_of_the_life_of_the_job() -> None:
    times_s = [0.0, 1e4, 2e4, 3e4, 4e4, 5e4]
    assert fails_each_time(times_s, restartAllAfter=2, jobRestarts=1)[-1] == "failed"
    assert fails_each_time(times_s) == ["pod 1"] * 6
