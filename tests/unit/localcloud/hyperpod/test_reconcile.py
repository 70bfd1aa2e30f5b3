"""The control plane's decisions."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.localcloud.hyperpod.control import (
    GATHER_S,
    Check,
    Detach,
    Health,
    HoldBack,
    MarkFailed,
    Observation,
    Prepare,
    Reboot,
    Remove,
    Replace,
    SetStatus,
    Update,
    decide,
)
from holdfast.localcloud.hyperpod.model import MAX_ATTEMPTS, Cluster, Group, Instance

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abc"
ALIVE = {"i-0": Health.ALIVE, "i-1": Health.ALIVE}


def cluster(status: str = "InService", *statuses: str, **settings: Any) -> Cluster:
    instances = [
        Instance(instance_id=f"i-{number}", group="workers", address=f"10.1.0.{10 + number}", status=one)
        for number, one in enumerate(statuses or ("Running", "Running"))
    ]
    group = Group(name="workers", instance_type="ml.p5.48xlarge", slurm_role="Compute")
    return Cluster(arn=ARN, name="dev", status=status, groups=(group,), instances=tuple(instances), **settings)


def test_a_healthy_cluster_needs_nothing() -> None:
    assert decide(Observation(cluster=cluster(), health=ALIVE)) == []


def test_pending_instances_are_prepared_whether_they_run_or_not() -> None:
    observed = Observation(cluster=cluster("Creating", "Pending", "Pending"), health={"i-0": Health.ALIVE})
    assert decide(observed) == [Prepare(instance_id="i-0"), Prepare(instance_id="i-1")]


def test_a_pending_instance_that_died_is_begun_afresh() -> None:
    observed = Observation(cluster=cluster("InService", "Running", "Pending"), health={**ALIVE, "i-1": Health.DEAD})
    assert decide(observed) == [Prepare(instance_id="i-1", afresh=True)]


@pytest.mark.parametrize("status", ["Running", "Failure"])
def test_software_is_updated_and_nodes_are_detached_on_request(status: str) -> None:
    observed = Observation(
        cluster=cluster("SystemUpdating", status, status), health=ALIVE, requests={"i-0": "update", "i-1": "detach"}
    )
    assert decide(observed) == [Update(instance_id="i-0"), Detach(instance_id="i-1")]


@pytest.mark.parametrize("status", ["SystemUpdating", "AttachInProgress"])
@pytest.mark.parametrize(("health", "afresh"), [(Health.ABSENT, False), (Health.ALIVE, False), (Health.DEAD, True)])
def test_a_node_with_a_new_root_is_prepared_and_never_replaced(status: str, health: Health, afresh: bool) -> None:
    observed = Observation(cluster=cluster("InService", "Running", status), health={**ALIVE, "i-1": health})
    assert decide(observed) == [Prepare(instance_id="i-1", afresh=afresh)]


def test_the_service_ends_an_update_of_software_and_the_control_plane_does_not() -> None:
    assert decide(Observation(cluster=cluster("SystemUpdating"), health=ALIVE)) == []


def test_nothing_is_decided_about_busy_instances() -> None:
    observed = Observation(cluster=cluster("Creating", "Pending", "Pending"), busy=frozenset({"i-0", "i-1"}))
    assert decide(observed) == []


@pytest.mark.parametrize(
    ("health", "seen"),
    [
        (Health.DEAD, "its init process exited"),
        (Health.FROZEN, "no response: its processes are stopped"),
        (Health.SILENT, "its network is unreachable"),
    ],
)
def test_a_lost_instance_is_replaced(health: Health, seen: str) -> None:
    observed = Observation(cluster=cluster(), health={**ALIVE, "i-1": health})
    assert decide(observed) == [Replace(instance_id="i-1", cause=seen, lost=True)]


def test_a_node_that_slurm_does_not_reach_is_not_rebooted_without_node_recovery() -> None:
    observed = Observation(cluster=cluster(node_recovery="None"), health=ALIVE, marks={"i-0": "unresponsive"})
    assert decide(observed) == []


def test_a_lost_instance_without_node_recovery_waits_for_a_person() -> None:
    observed = Observation(cluster=cluster(node_recovery="None"), health={**ALIVE, "i-1": Health.DEAD})
    (action,) = decide(observed)
    assert isinstance(action, MarkFailed)
    assert action.message == "its init process exited; node recovery is None: call BatchReplaceClusterNodes"
    failed = cluster("InService", "Running", "Failure", node_recovery="None")
    assert decide(Observation(cluster=failed, health=ALIVE, attempts={"10.1.0.11": 1})) == []
    asked = decide(Observation(cluster=failed, requests={"i-1": "replace"}, health=ALIVE))
    assert asked == [Replace(instance_id="i-1", cause="BatchReplaceClusterNodes was called")]


def test_instances_come_back_under_their_ids_after_the_machine_restarted() -> None:
    expected = [Prepare(instance_id="i-0"), Prepare(instance_id="i-1")]
    assert decide(Observation(cluster=cluster())) == expected


def test_requests_are_followed() -> None:
    observed = Observation(cluster=cluster(), health=ALIVE, requests={"i-0": "reboot", "i-1": "delete"})
    expected = [
        Reboot(instance_id="i-0", cause="BatchRebootClusterNodes was called"),
        Remove(instance_id="i-1"),
    ]
    assert decide(observed) == expected


def test_slurm_reasons_are_followed() -> None:
    observed = Observation(cluster=cluster(), health=ALIVE, marks={"i-0": "reboot", "i-1": "replace"})
    assert [type(action) for action in decide(observed)] == [Reboot, Replace]
    (silent,) = decide(Observation(cluster=cluster(), health=ALIVE, marks={"i-0": "unresponsive"}))
    assert isinstance(silent, Reboot)
    assert silent.unreachable


def test_a_failed_replacement_is_tried_a_bounded_number_of_times() -> None:
    failed = cluster("InService", "Running", "Failure")
    for tried in range(1, MAX_ATTEMPTS):
        (action,) = decide(Observation(cluster=failed, health=ALIVE, attempts={"10.1.0.11": tried}))
        assert isinstance(action, Replace)
    assert decide(Observation(cluster=failed, health=ALIVE, attempts={"10.1.0.11": MAX_ATTEMPTS})) == []


def test_a_cluster_is_in_service_once_all_run_and_slurm_is_settled() -> None:
    observed = Observation(cluster=cluster("Creating"), health=ALIVE)
    assert decide(observed) == [SetStatus(status="InService")]
    assert decide(Observation(cluster=cluster("Creating"), health=ALIVE, slurm_settled=False)) == []


def test_a_failed_creation_names_one_instance_and_says_that_there_may_be_more() -> None:
    observed = Observation(
        cluster=cluster("Creating", "Failure", "Failure"),
        health=ALIVE,
        failures={"i-0": "exit code 3 in step users", "i-1": "exit code 1"},
    )
    (action,) = decide(observed)
    message = (
        'Instance i-0 failed to provision with the following error: "exit code 3 in step users" '
        "Note that multiple instances may be impacted."
    )
    assert action == SetStatus(status="Failed", message=message)


def test_a_failure_waits_a_little_for_others_to_be_named_with_it() -> None:
    half = cluster("Creating", "Failure", "Pending")
    busy = frozenset({"i-1"})
    assert decide(Observation(cluster=half, busy=busy, failed_for_s={"i-0": GATHER_S / 2})) == []
    (action,) = decide(Observation(cluster=half, busy=busy, failed_for_s={"i-0": GATHER_S}))
    assert isinstance(action, SetStatus)
    assert action.status == "Failed"


def test_a_failed_update_rolls_back_to_the_instances_before_it() -> None:
    updating = cluster("Updating", "Running", "Failure")
    (begin,) = decide(Observation(cluster=updating, health=ALIVE, settled=frozenset({"i-0"}), failures={"i-1": "no"}))
    assert isinstance(begin, SetStatus)
    assert begin.status == "RollingBack"
    assert begin.message.startswith('Instance i-1 failed to provision with the following error: "no"')
    rolling = cluster("RollingBack", "Running", "Failure")
    assert decide(Observation(cluster=rolling, settled=frozenset({"i-0"}))) == [Remove(instance_id="i-1")]
    done = cluster("RollingBack", "Running")
    (end,) = decide(Observation(cluster=done, settled=frozenset({"i-0"}), rollback_message="i-1: no"))
    assert end == SetStatus(status="InService", message="i-1: no")


def test_an_instance_that_failed_before_an_update_does_not_fail_it() -> None:
    updating = cluster("Updating", "Running", "Failure")
    observed = Observation(cluster=updating, health=ALIVE, settled=frozenset({"i-0", "i-1"}))
    assert decide(observed) == [SetStatus(status="InService")]


def test_deletion_removes_every_instance_and_then_the_cluster() -> None:
    deleting = cluster("Deleting", "Running", "Failure")
    assert decide(Observation(cluster=deleting)) == [
        Remove(instance_id="i-0"),
        Remove(instance_id="i-1"),
    ]
    empty = Cluster(arn=ARN, name="dev", status="Deleting")
    assert decide(Observation(cluster=empty)) == [SetStatus(status="Deleted")]
    assert decide(Observation(cluster=empty, busy=frozenset({"i-0"}))) == []


def test_a_failed_cluster_is_left_as_it_is() -> None:
    assert decide(Observation(cluster=cluster("Failed", "Failure", "Pending"))) == []


def test_with_continuous_provisioning_the_cluster_is_in_service_at_once() -> None:
    creating = cluster("Creating", "Pending", "Pending", continuous=True)
    assert decide(Observation(cluster=creating)) == [SetStatus(status="InService")]


def test_with_continuous_provisioning_what_never_ran_is_tried_again() -> None:
    failed = cluster("InService", "Running", "Failure", continuous=True)
    again = decide(Observation(cluster=failed, health=ALIVE, failures={"i-1": "no"}))
    assert again == [Replace(instance_id="i-1", cause="no")]


@pytest.mark.parametrize(("tried", "rest_s"), [(MAX_ATTEMPTS, 10), (MAX_ATTEMPTS + 1, 20), (MAX_ATTEMPTS + 30, 60)])
def test_with_continuous_provisioning_no_attempt_is_the_last_and_each_rests_longer(tried: int, rest_s: float) -> None:
    failed = cluster("InService", "Running", "Failure", continuous=True)

    def after(failed_for_s: float) -> list[Any]:
        attempts, seconds = {"10.1.0.11": tried}, {"i-1": failed_for_s}
        return decide(Observation(cluster=failed, health=ALIVE, attempts=attempts, failed_for_s=seconds))

    assert after(rest_s - 0.1) == []
    assert [type(action) for action in after(rest_s)] == [Replace]


def of_slurm(controller: str, login: str, worker: str, *, status: str = "Creating", **settings: Any) -> Cluster:
    kinds = {"head": "Controller", "door": "Login", "workers": "Compute"}
    groups = tuple(
        Group(name=name, instance_type="ml.c5.xlarge", slurm_role=kind, on_create="on_create.sh")
        for name, kind in kinds.items()
    )
    instances = tuple(
        Instance(instance_id=f"i-{name}", group=name, address=f"10.1.0.{10 + number}", status=one)
        for number, (name, one) in enumerate(zip(kinds, (controller, login, worker), strict=True))
    )
    return Cluster(arn=ARN, name="dev", status=status, groups=groups, instances=instances, **settings)


def prepared(observed: Observation) -> list[str]:
    return [action.instance_id for action in decide(observed) if isinstance(action, Prepare)]


@pytest.mark.parametrize(
    ("controller", "login"), [("Pending", "Pending"), ("Running", "Pending"), ("Pending", "Running")]
)
def test_a_continuous_cluster_waits_for_controller_and_login(controller: str, login: str) -> None:
    waiting = Observation(cluster=of_slurm(controller, login, "Pending", continuous=True))
    assert not [action for action in decide(waiting) if isinstance(action, SetStatus)]
    assert "i-workers" in prepared(waiting)


def test_a_continuous_cluster_is_in_service_before_its_workers() -> None:
    ready = Observation(cluster=of_slurm("Running", "Running", "Pending", continuous=True))
    assert decide(ready) == [SetStatus(status="InService")]
    plain = Observation(cluster=of_slurm("Running", "Running", "Pending"))
    assert prepared(plain) == ["i-head", "i-door", "i-workers"]


def test_a_failed_script_of_a_controller_fails_a_continuous_cluster_for_good() -> None:
    failed = of_slurm("Failure", "Running", "Running", continuous=True)
    known = {"failures": {"i-head": "exit code 3"}, "health": dict.fromkeys(["i-head"], Health.ALIVE)}
    (given_up,) = decide(Observation(cluster=failed, scripts_failed=frozenset({"i-head"}), **known))
    assert isinstance(given_up, SetStatus)
    assert given_up.status == "Failed"
    assert "Instance i-head failed to provision" in given_up.message


def test_a_controller_that_failed_otherwise_is_tried_again_with_continuous_provisioning() -> None:
    failed = of_slurm("Failure", "Running", "Running", continuous=True)
    health = dict.fromkeys(["i-head", "i-door", "i-workers"], Health.ALIVE)
    observed = Observation(cluster=failed, failures={"i-head": "its network failed"}, health=health)
    assert decide(observed) == [Replace(instance_id="i-head", cause="its network failed")]


def test_a_failed_script_of_a_worker_is_tried_again_and_the_cluster_goes_on() -> None:
    serving = of_slurm("Running", "Running", "Failure", continuous=True, status="InService")
    health = dict.fromkeys(["i-head", "i-door", "i-workers"], Health.ALIVE)
    observed = Observation(
        cluster=serving, failures={"i-workers": "no"}, scripts_failed=frozenset({"i-workers"}), health=health
    )
    assert decide(observed) == [Replace(instance_id="i-workers", cause="no")]


EKS = {"eks_arn": "arn:aws:eks:us-west-2:123456789012:cluster/k"}


@pytest.mark.parametrize(("mark", "action"), [("replace", Replace), ("reboot", Reboot)])
def test_a_health_label_of_kubernetes_is_followed(mark: str, action: type[Replace | Reboot]) -> None:
    seen = Observation(cluster=cluster("InService", "Running", **EKS), health=ALIVE, marks={"i-0": mark})
    (decided,) = decide(seen)
    assert isinstance(decided, action)
    assert "labelled Unschedulable" in decided.cause


@pytest.mark.parametrize("mark", ["replace", "reboot"])
def test_a_health_label_is_not_followed_without_node_recovery(mark: str) -> None:
    left = cluster("InService", "Running", node_recovery="None", **EKS)
    assert decide(Observation(cluster=left, health=ALIVE, marks={"i-0": mark})) == []


def test_a_replacement_that_was_interrupted_is_begun_again() -> None:
    (decided,) = decide(Observation(cluster=cluster("InService", "ShuttingDown", **EKS)))
    assert isinstance(decided, Replace)


# --- deep health checks


def deep(status: str, **settings: Any) -> Cluster:
    made = cluster("InService", status, "Running", **settings)
    group = Group(name="workers", instance_type="ml.p5.48xlarge", slurm_role="Compute", deep_checks=("InstanceStress",))
    return replace(made, groups=(group,))


def test_checks_that_were_asked_for_are_run_and_those_of_an_interrupted_start_are_the_groups() -> None:
    asked = Observation(cluster=deep("Running"), health=ALIVE, requests={"i-0": "check InstanceConnectivity"})
    assert decide(asked) == [Check(instance_id="i-0", checks=("InstanceConnectivity",))]
    interrupted = Observation(cluster=deep("DeepHealthCheckInProgress"), health=ALIVE)
    assert decide(interrupted) == [Check(instance_id="i-0", checks=("InstanceStress",))]


def test_an_instance_that_is_lost_or_marked_while_it_is_checked_is_treated_as_any_other() -> None:
    being_checked = deep("DeepHealthCheckInProgress")
    lost = Observation(
        cluster=being_checked, health={**ALIVE, "i-0": Health.DEAD}, requests={"i-0": "check InstanceStress"}
    )
    assert [(type(one), one.instance_id) for one in decide(lost)] == [(Replace, "i-0")]  # type: ignore[union-attr]
    marked = Observation(cluster=being_checked, health=ALIVE, marks={"i-0": "reboot"})
    assert isinstance(decide(marked)[0], Reboot)


def test_a_cluster_that_is_being_made_is_not_in_service_while_an_instance_is_checked() -> None:
    making = replace(deep("DeepHealthCheckInProgress"), status="Creating")
    assert SetStatus(status="InService") not in decide(
        Observation(cluster=making, health=ALIVE, busy=frozenset({"i-0"}))
    )
    assert decide(Observation(cluster=making, health=ALIVE)) == [Check(instance_id="i-0", checks=("InstanceStress",))]


# --- many at once


def five(seen: Health, *, accused: int = 4, **more: Any) -> Observation:
    """Five workers, some of which seem to be broken."""
    health = {f"i-{number}": seen if number < accused else Health.ALIVE for number in range(5)}
    return Observation(cluster=cluster("InService", *["Running"] * 5), health=health, **more)


def kinds_of(observed: Observation) -> list[type]:
    return [type(action) for action in decide(observed)]


@pytest.mark.parametrize("seen", [Health.FROZEN, Health.SILENT])
def test_of_four_workers_of_five_that_are_accused_at_once_one_goes_and_a_person_is_asked(seen: Health) -> None:
    decided = decide(five(seen))
    assert [(type(one), one.instance_id) for one in decided] == [  # type: ignore[union-attr]
        (HoldBack, "i-1"), (HoldBack, "i-2"), (HoldBack, "i-3"), (Replace, "i-0"),
    ]  # fmt: skip
    assert "4 of 5 instances seem to be broken at once" in decided[0].message  # type: ignore[union-attr]
    after = five(seen, accused=3, judged_lately=1)
    assert kinds_of(after) == [HoldBack, HoldBack, HoldBack], "once the first is back, and for an hour"


def test_slurm_accuses_no_more_at_once_than_anybody_else() -> None:
    marks = {f"i-{number}": "unresponsive" for number in range(4)}
    assert kinds_of(five(Health.ALIVE, marks=marks)) == [HoldBack, HoldBack, HoldBack, Reboot]


def test_with_a_share_of_one_all_are_believed() -> None:
    assert kinds_of(five(Health.SILENT, share=1.0)) == [Replace] * 4


def test_an_accusation_that_stands_alone_is_believed_however_many_came_before() -> None:
    assert kinds_of(five(Health.FROZEN, accused=1, judged_lately=20)) == [Replace]


def test_who_is_gone_or_was_asked_for_or_marked_is_under_no_limit_here() -> None:
    assert kinds_of(five(Health.DEAD)) == [Replace] * 4
    requests = {f"i-{number}": "replace" for number in range(4)}
    assert kinds_of(five(Health.SILENT, requests=requests)) == [Replace] * 4
    marks = {f"i-{number}": "replace" for number in range(4)}
    assert kinds_of(five(Health.ALIVE, marks=marks)) == [Replace] * 4


def test_a_cluster_is_in_service_again_though_some_of_its_instances_are_held() -> None:
    observed = replace(five(Health.SILENT, accused=3, judged_lately=1), cluster=cluster("Updating", *["Running"] * 5))
    assert decide(observed)[-1] == SetStatus(status="InService")
