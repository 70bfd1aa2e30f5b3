"""Plans of upgrades, what they say that jobs lose, and end states in words."""

from typing import Any

import pytest

from holdfast.cli.upgrading import (
    GroupEnd,
    GroupFacts,
    JobFacts,
    NodeFacts,
    Request,
    Situation,
    end_of,
    jobs_of,
    plan_lines,
    plan_of,
    problems_of,
)

NEW = Request(release="2.0.0")
GROUPS = ("first", "second", "third")


def situation(*jobs: JobFacts, idle: tuple[int, ...] = (), **more: Any) -> Situation:
    """A controller and three groups of two workers, numbered 0 to 5."""
    workers = tuple(NodeFacts(instance_id=f"i-{n}", host=f"w{n}", group=GROUPS[n // 2]) for n in range(6))
    return Situation(
        **{
            "orchestrator": "slurm",
            "groups": (
                GroupFacts(name="head", node_type="Controller", image="1.0.0"),
                *(GroupFacts(name=name, node_type="Compute", image="1.0.0") for name in GROUPS),
            ),
            "nodes": (NodeFacts(instance_id="i-h", host="h", group="head"), *workers),
            "jobs": jobs,
            "idle": hosts(*idle),
            **more,
        }
    )


def hosts(*numbers: int) -> frozenset[str]:
    return frozenset(f"w{number}" for number in numbers)


def effects(given: Situation, group: str, request: Request = NEW) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (plan,) = [one for one in plan_of(given, request) if one.group.name == group]
    return plan.leave, plan.lost


# --- which groups


def test_compute_groups_are_upgraded_one_after_the_other_and_the_controller_only_by_name() -> None:
    plans = plan_of(situation(), NEW)
    assert [(one.group.name, one.skipped, one.at_a_time) for one in plans] == [
        ("first", "", 2),
        ("second", "", 2),
        ("third", "", 2),
        ("head", "upgraded only with --group", 0),
    ]
    named = plan_of(situation(), Request(groups=("head",), release="2.0.0"))
    assert [one.group.name for one in named if not one.skipped] == ["head"]
    assert "the queue is lost unless its state is on a shared file system" in named[-1].lost[0]


def test_a_group_that_has_the_software_stays_as_it_is() -> None:
    same = plan_of(situation(), Request(release="1.0.0"))
    assert {one.skipped for one in same[:3]} == {"has 1.0.0"}
    latest = (GroupFacts(name="first", node_type="Compute", version_status="UpToDate"),)
    assert plan_of(situation(groups=latest), Request())[0].skipped == "up to date"
    older = (GroupFacts(name="first", node_type="Compute", version_status="UpdateAvailable"),)
    assert plan_of(situation(groups=older), Request())[0].skipped == ""


def test_with_eks_nodes_are_updated_in_batches_and_the_plan_says_that_pods_are_not_drained() -> None:
    on_eks = situation(orchestrator="eks", groups=(GroupFacts(name="first"),))
    for batch, expected in ((0, 1), (2, 2), (9, 2)):
        (plan,) = plan_of(on_eks, Request(release="2.0.0", batch=batch))
        assert plan.at_a_time == expected
        assert "HyperPod does not drain them" in plan.lost[0]
        assert plan.wait_s == 0


@pytest.mark.parametrize(
    ("job", "batch", "leave", "lost", "wait_s"),
    [
        ({"spare_count": 1}, 1, "job default/a: spares take over from each batch", "", 300),
        ({"spare_count": 1}, 2, "", "job default/a: has 1 of the 2 nodes that a batch takes as spares: it waits", 0),
        ({"least": 3}, 1, "job default/a: shrinks with each batch, and grows back", "", 300),
        ({"least": 4}, 1, "", "has 0 of the 1 node that a batch takes as spares", 0),
        ({"launched": False}, 1, "", "its pods end with their nodes: it is no HoldfastJob", 0),
    ],
)
def test_with_eks_a_job_with_as_many_spares_as_a_batch_has_nodes_loses_nothing(
    job: dict[str, Any], batch: int, leave: str, lost: str, wait_s: int
) -> None:
    given = situation(JobFacts(job="default/a", ranks=hosts(0, 1, 2, 3), **job), orchestrator="eks")
    (plan,) = [one for one in plan_of(given, Request(release="2.0.0", batch=batch)) if one.group.name == "first"]

    assert plan.leave == ((leave,) if leave else ())
    assert (lost or "other pods on") in plan.lost[0]
    assert plan.wait_s == wait_s
    (asked,) = [
        one for one in plan_of(given, Request(release="2.0.0", wait_s=60, batch=batch)) if one.group.name == "first"
    ]
    assert asked.wait_s == 60


def test_what_kubernetes_does_not_say_of_jobs_is_in_the_plan() -> None:
    given = situation(orchestrator="eks", unknown="the jobs of the cluster cannot be listed: 403")
    assert plan_of(given, NEW)[1].lost[-1] == "jobs: not checked: the jobs of the cluster cannot be listed: 403"


# --- jobs


def test_a_job_with_a_spare_and_idle_nodes_elsewhere_loses_nothing() -> None:
    job = JobFacts(job="7", name="train", ranks=hosts(0, 1, 2, 3), spares=hosts(4))
    leave, lost = effects(situation(job, idle=(5,)), "first")
    assert (leave, lost) == (("job 7 (train): hands the ranks of 2 nodes over",), ())


@pytest.mark.parametrize(
    ("spares", "idle", "room"),
    [((4,), (), 1), ((), (4, 5), 0), ((1,), (4,), 1)],
    ids=["one spare", "idle nodes and no spare", "the spare is in the group"],
)
def test_a_job_without_room_for_its_ranks_is_lost_and_the_plan_says_so(
    spares: tuple[int, ...], idle: tuple[int, ...], room: int
) -> None:
    ranks = hosts(0, 1, 2, 3) - hosts(*spares)
    leave, lost = effects(situation(JobFacts(job="7", ranks=ranks, spares=hosts(*spares)), idle=idle), "first")
    here = len(ranks & hosts(0, 1))
    if room >= here:
        assert (len(leave), lost) == (1, ())
    else:
        assert lost == (
            f"job 7: has ranks on {here} nodes here and room on {room} elsewhere: it stops, and repeats the steps "
            "since its last checkpoint",
        )


def test_two_jobs_do_not_share_one_idle_node() -> None:
    jobs = [JobFacts(job=name, ranks=hosts(n), spares=hosts(n + 2)) for name, n in (("1", 0), ("2", 1))]
    two_each = [
        JobFacts(job="1", ranks=hosts(0, 1), spares=hosts(2)),
        JobFacts(job="2", ranks=hosts(0, 1), spares=hosts(3)),
    ]
    assert effects(situation(*jobs), "first")[1] == ()
    leave, lost = effects(situation(*two_each, idle=(5,)), "first")
    assert (len(leave), len(lost)) == (1, 1)


def test_an_elastic_job_shrinks_as_far_as_its_sizes_and_its_quorum_allow() -> None:
    job = JobFacts(job="7", ranks=hosts(*range(6)), least=4)
    assert effects(situation(job), "first") == (("job 7: shrinks from 6 to 4 nodes, and grows back",), ())
    assert (
        "would be left, and it needs 5"
        in effects(situation(JobFacts(job="7", ranks=hosts(*range(6)), least=5)), "first")[1][0]
    )


def test_a_job_of_another_launcher_ends_with_its_nodes() -> None:
    tasks = [("9", "mpi", "w0", 0, 2), ("9", "mpi", "w2", 0, 2), ("7", "train", "w3", 0, 1)]
    found = jobs_of(tasks, {"w3": [{"job": "7", "ranks": 0}], "w2": []})
    assert [(one.job, one.launched, sorted(one.ranks), sorted(one.spares)) for one in found] == [
        ("9", False, ["w0", "w2"], []),
        ("7", True, [], ["w3"]),
    ]
    assert effects(situation(*found), "first")[1] == (
        "job 9 (mpi): ends with its 1 node: it does not run under holdfast-run",
    )


def test_a_node_of_an_allocation_of_several_does_not_leave() -> None:
    tasks = [("7", "train", f"w{number}", 0, 3) for number in range(3)]
    (job,) = jobs_of(tasks, {f"w{number}": [{"job": "7", "ranks": int(number < 2)}] for number in range(3)})

    leave, lost = effects(situation(job), "first")
    assert (leave, len(lost)) == ((), 1)
    assert "one allocation keeps" in lost[0]


def test_a_release_is_one_of_the_ami() -> None:
    assert problems_of(situation(), Request(release="two")) == [
        "got --release two; allowed: a release of HyperPod's AMI such as 1.2.3"
    ]


def test_jobs_that_could_not_be_asked_for_are_named_as_lost() -> None:
    (text,) = effects(situation(unknown="SSM does not answer"), "first")[1]
    assert text == "all jobs on these nodes: not checked: SSM does not answer"


# --- refusals


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(groups=("worker",)), "got --group worker; allowed: head, first, second, third"),
        (Request(release="2.0.0", image_id="ami-1"), "got --release and --image; allowed: one of them"),
        (Request(release="2.0.0", batch=2), "got --batch; allowed: with EKS only"),
    ],
)
def test_what_cannot_be_done_is_refused(request_: Request, words: str) -> None:
    assert any(words in problem for problem in problems_of(situation(), request_))


def test_a_node_that_is_not_running_holds_its_group_back_and_no_other() -> None:
    nodes = (*situation().nodes[:-1], NodeFacts(instance_id="i-5", host="w5", group="third", status="Failure"))
    assert ["w5 (i-5) of group third is Failure" in one for one in problems_of(situation(nodes=nodes), NEW)] == [True]
    assert problems_of(situation(nodes=nodes), Request(groups=("first",), release="2.0.0")) == []


# --- words


def test_the_plan_is_shown_group_by_group_with_what_is_lost() -> None:
    lines = plan_lines(plan_of(situation(JobFacts(job="9", ranks=hosts(0), launched=False)), NEW), NEW)
    assert lines[:2] == [
        "first: 2 nodes, all at once: 1.0.0 -> 2.0.0",
        "  lost: job 9: ends with its 1 node: it does not run under holdfast-run",
    ]
    assert lines[-2:] == [
        "head: stays as it is: upgraded only with --group",
        "root volumes are replaced: what is stored there is lost; lifecycle scripts run again",
    ]


def test_an_upgrade_that_stops_has_one_message_with_each_groups_state_and_what_to_do() -> None:
    ends = [
        GroupEnd(name="first", status="Succeeded", nodes=2),
        GroupEnd(name="second", status="Failed", nodes=2, bad=(("w3", "Failure"),), message="the script failed"),
        GroupEnd(name="third", nodes=2),
    ]
    assert end_of(ends, again="holdfast upgrade lab --release 2.0.0") == (
        "group second is Failed: the script failed; nodes not in service: w3 Failure; upgraded: first (2); not begun: "
        "third; remove the cause, then run: holdfast upgrade lab --release 2.0.0 --group second --group third",
        False,
    )
    assert end_of(ends[:1], again="") == ("upgraded: first (2)", True)
