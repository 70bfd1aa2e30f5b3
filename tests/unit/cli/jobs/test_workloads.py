"""Jobs of Kubernetes out of the objects that the API server tells of."""

from typing import Any

from holdfast.cli.kubernetes import Workload, pod_record, readiness, workloads

T0, T1 = "2026-11-23T04:00:00Z", "2026-11-23T04:01:30Z"


def thing(
    kind: str, name: str, *, labels: dict[str, str] | None = None, owner: str = "", **parts: Any
) -> dict[str, Any]:
    owners = [{"uid": owner, "controller": True, "kind": "X", "name": "x"}] if owner else []
    metadata = {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": T0, "labels": labels or {},
        "ownerReferences": owners,
    }  # fmt: skip
    return {"kind": kind, "metadata": metadata, **parts}


def job(name: str, *, condition: str = "", labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": T1, "reason": "Why"}] if condition else []
    return thing("Job", name, labels=labels, spec={}, status={"conditions": conditions, **status})


def pod(name: str, *, owner: str = "", phase: str = "Running", node: str = "n1", **status: Any) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "main"}]}
    return thing("Pod", name, owner=owner, spec=spec, status={"phase": phase, **status})


def only(objects: list[dict[str, Any]], pods: list[dict[str, Any]]) -> Workload:
    (found,) = workloads(objects, pods)
    return found


def test_a_job_runs_when_a_pod_of_it_runs() -> None:
    found = only([job("train")], [pod("train-x", owner="uid-train")])

    assert (found.state, found.kinds, found.nodes) == ("Running", "Job", ("n1",))
    assert not found.has_ended


def test_objects_of_one_instance_are_one_job_which_is_complete_when_all_are() -> None:
    label = {"app.kubernetes.io/instance": "train"}
    two = [job("train-0", labels=label, condition="Complete", completionTime=T1), job("train-1", labels=label)]

    going_on = only(two, [pod("train-1-x", owner="uid-train-1")])
    two[1]["status"]["conditions"] = two[0]["status"]["conditions"]
    ended = only(two, [])

    assert (str(going_on.job), going_on.kinds, going_on.state) == ("train", "2 Jobs", "Running")
    assert (ended.state, (ended.ended_s or 0) - ended.created_s) == ("Complete", 90)


def test_one_failed_object_fails_the_job_with_its_reason() -> None:
    label = {"app.kubernetes.io/instance": "train"}

    found = only([job("a", labels=label, condition="Complete"), job("b", labels=label, condition="Failed")], [])

    assert (found.state, found.why) == ("Failed", "Why")


def test_a_pod_that_nothing_controls_is_a_job_and_one_of_the_system_is_none() -> None:
    system = pod("coredns")
    system["metadata"]["namespace"] = "kube-system"

    found = only([], [pod("mine", phase="Succeeded"), system, pod("of-a-replica-set", owner="uid-gone")])

    assert (str(found.job), found.kinds, found.state) == ("mine", "Pod", "Complete")


def test_a_job_that_an_operator_made_is_shown_as_the_operators_alone() -> None:
    theirs = thing("PyTorchJob", "big", spec={}, status={"conditions": [{"type": "Running", "status": "True"}]})
    inner = thing("Job", "big-inner", owner="uid-big", spec={}, status={})

    found = only([theirs, inner], [pod("big-0", owner="uid-big")])

    assert (found.kinds, found.state) == ("PyTorchJob", "Running")


def test_a_suspended_job_says_so() -> None:
    waiting = job("train")
    waiting["spec"]["suspend"] = True

    assert only([waiting], []).state == "Suspended"


def test_a_stateful_set_waits_until_all_its_pods_are_ready() -> None:
    def states(ready: int) -> tuple[str, str]:
        found = only([thing("StatefulSet", "s", spec={"replicas": 2}, status={"readyReplicas": ready})], [])
        return found.state, found.why

    assert states(1) == ("Pending", "1 of 2 pods are ready")
    assert states(2) == ("Running", "")


def test_a_job_that_no_node_can_take_says_why() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/6 nodes: no GPU"}
    unplaced = pod("train-x", owner="uid-train", phase="Pending", node="", conditions=[condition])

    found = only([job("train")], [unplaced])

    assert (found.state, found.why, found.nodes) == ("Pending", "Unschedulable: 0/6 nodes: no GPU", ())


def test_a_pod_says_what_keeps_it_from_running() -> None:
    pulling = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    starting = {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    killed = {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}

    said = [pod_record(pod("p", phase="Pending", containerStatuses=[one])).why for one in (pulling, starting, killed)]

    assert said == ["ImagePullBackOff: no such image", "", "exit code 137 (OOMKilled)"]


def test_jobs_that_failed_come_first_and_those_that_ended_well_last() -> None:
    found = workloads([job("good", condition="Complete"), job("waits"), job("bad", condition="Failed")], [])

    assert [str(one.job) for one in found] == ["bad", "waits", "good"]


def test_a_node_is_shown_as_kubectl_shows_it() -> None:
    def node(status: str, *, cordoned: bool = False) -> dict[str, Any]:
        conditions = [{"type": "Ready", "status": status}]
        return {"spec": {"unschedulable": cordoned}, "status": {"conditions": conditions}}

    shown = [readiness(node("True")), readiness(node("Unknown")), readiness(node("True", cordoned=True))]

    assert shown == ["Ready", "NotReady", "Ready,SchedulingDisabled"]


def operated(*conditions: dict[str, Any]) -> dict[str, Any]:
    return thing("HoldfastJob", "night", spec={"suspend": False}, status={"conditions": list(conditions)})


def condition(kind: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "Why", "message": message, "lastTransitionTime": T1}


def test_a_holdfast_job_has_its_pods_and_the_state_of_its_conditions() -> None:
    pods = [pod(f"night-{index}", owner="uid-night", node=f"n{index}") for index in range(4)]
    running = only([operated(condition("Running"))], pods)
    assert (running.kinds, running.state, running.nodes) == ("HoldfastJob", "Running", ("n0", "n1", "n2", "n3"))
    failed = only([operated(condition("Running"), condition("Failed", "launcher restarts: got 4; allowed: 3"))], [])
    assert (failed.state, failed.why) == ("Failed", "Why: launcher restarts: got 4; allowed: 3")
    assert only([operated(condition("Suspended"))], []).state == "Suspended"


def test_an_invalid_holdfast_job_names_its_mistakes() -> None:
    found = only([operated(condition("Invalid", "spec.oops: unknown field"))], [])
    assert (found.state, found.why) == ("Pending", "spec.oops: unknown field")


def test_a_holdfast_job_without_pods_waits_for_what_its_operator_names() -> None:
    words = "0 of 3 pods run; pod night-0 was refused: exceeded quota"
    waits = {"type": "Running", "status": "False", "reason": "PodsPending", "message": words}
    night = thing("HoldfastJob", "night", spec={}, status={"conditions": [waits]})

    without, running = only([night], []), only([night], [pod("night-0", owner="uid-night")])

    assert (without.state, without.why) == ("Pending", words)
    assert (running.state, running.why) == ("Running", "")
