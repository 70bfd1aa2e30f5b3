"""What charts, operators and jobs take for granted of where and whether pods run: devices, taints, priorities, quotas.

Each behaviour is a row of docs/reference/kubernetes-api.md, with its source; everything is asked by plain HTTPS.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes_http import Api, Refused
from kubernetes_things import condition, deployment, pod, pods_path, ready_nodes, template, wait_phase, wait_ready
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes]

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NODES = "/api/v1/nodes"
DEVICE, DEVICES = "holdfast.test/device", 8


def devices(count: int) -> dict[str, Any]:
    return {"resources": {"limits": {DEVICE: str(count)}}}


def events(api: Api, namespace: str, name: str, reason: str) -> list[str]:
    found = api.get(
        f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"involvedObject.name={name},reason={reason}"
    )
    return [event["message"] for event in found["items"]]


@pytest.fixture
def marked(api: Api) -> Iterator[tuple[str, str]]:
    """
    A node with a label of its own and eight devices, and without taints of tests at the end: its name and the label.

    Devices are told as Kubernetes' page says it (tasks/administer-cluster/extended-resource-node).
    """
    name, label = ready_nodes(api)[-1], f"test-{secrets.token_hex(3)}"
    api.patch(f"{NODES}/{name}", {"metadata": {"labels": {label: "yes"}}})
    api.patch(f"{NODES}/{name}/status", {"status": {"capacity": {DEVICE: str(DEVICES)}}})
    eventually_true(lambda: DEVICE in api.get(f"{NODES}/{name}")["status"]["allocatable"], "the devices", within_s=90)
    yield name, label
    api.patch(f"{NODES}/{name}/status", {"status": {"capacity": {DEVICE: None}}})
    left = [taint for taint in api.get(f"{NODES}/{name}")["spec"].get("taints", []) if taint["key"] != label]
    api.patch(f"{NODES}/{name}", {"metadata": {"labels": {label: None}}, "spec": {"taints": left}})


@pytest.fixture
def priorities(api: Api) -> Iterator[tuple[str, str]]:
    """Two priority classes, the lower first."""
    names = (f"low-{secrets.token_hex(3)}", f"high-{secrets.token_hex(3)}")
    for value, name in zip((10, 1000), names, strict=True):
        api.post(CLASSES, {"metadata": {"name": name}, "value": value})
    yield names
    for name in names:
        api.delete(f"{CLASSES}/{name}")


def test_devices_are_counted_and_what_is_too_much_waits(
    api: Api, local_eks: LocalEks, namespace: str, marked: tuple[str, str]
) -> None:
    _, label = marked
    there: dict[str, Any] = {"nodeSelector": {label: "yes"}}
    api.post(pods_path(namespace), pod("some", image=local_eks.image, container=devices(DEVICES - 1), **there))
    wait_phase(api, namespace, "some", "Running")
    api.post(pods_path(namespace), pod("more", image=local_eks.image, container=devices(2), **there))
    eventually_true(lambda: events(api, namespace, "more", "FailedScheduling"), "the scheduler's word")
    waiting = api.get(pods_path(namespace, "more"))["status"]
    api.delete(pods_path(namespace, "some"))
    wait_phase(api, namespace, "more", "Running")

    assert waiting["phase"] == "Pending"
    assert waiting["conditions"][0]["reason"] == "Unschedulable"
    assert any(f"Insufficient {DEVICE}" in message for message in events(api, namespace, "more", "FailedScheduling"))


def test_pods_go_where_affinity_and_taints_let_them(
    api: Api, local_eks: LocalEks, namespace: str, marked: tuple[str, str]
) -> None:
    node, label = marked
    api.patch(f"{NODES}/{node}", {"spec": {"taints": [{"key": label, "value": "x", "effect": "NoSchedule"}]}})
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": ["yes"]}]}]
    wanted = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerates = [{"key": label, "operator": "Equal", "value": "x", "effect": "NoSchedule"}]
    api.post(pods_path(namespace), pod("bears", image=local_eks.image, affinity=wanted, tolerations=tolerates))
    api.post(pods_path(namespace), pod("shuns", image=local_eks.image, affinity=wanted))
    placed = wait_phase(api, namespace, "bears", "Running")
    [said] = eventually_true(lambda: events(api, namespace, "shuns", "FailedScheduling"), "the scheduler's word")[:1]

    assert placed["spec"]["nodeName"] == node
    assert "taint" in said


def test_a_taint_that_is_not_borne_ends_pods_that_run(
    api: Api, local_eks: LocalEks, namespace: str, marked: tuple[str, str]
) -> None:
    node, label = marked
    there: dict[str, Any] = {"nodeSelector": {label: "yes"}}
    forever = [{"key": label, "operator": "Exists"}]
    awhile = [{"key": label, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}]
    for name, tolerations in (("shuns", []), ("bears", forever), ("bears-awhile", awhile)):
        api.post(pods_path(namespace), pod(name, image=local_eks.image, tolerations=tolerations, **there))
        wait_phase(api, namespace, name, "Running")
    api.patch(f"{NODES}/{node}", {"spec": {"taints": [{"key": label, "effect": "NoExecute"}]}})
    eventually_true(lambda: api.find(pods_path(namespace, "shuns")) is None, "the end of the first")
    left = {one["metadata"]["name"] for one in api.get(pods_path(namespace))["items"]}
    eventually_true(lambda: api.find(pods_path(namespace, "bears-awhile")) is None, "the end of the second")

    assert left == {"bears", "bears-awhile"}
    assert condition(api.get(pods_path(namespace, "bears")), "Ready") == "True"


def test_every_pod_bears_a_lost_node_for_five_minutes(api: Api, local_eks: LocalEks, namespace: str) -> None:
    made = api.post(pods_path(namespace), pod("web", image=local_eks.image))
    api.delete(pods_path(namespace, "web"))

    borne = {one["key"]: one["tolerationSeconds"] for one in made["spec"]["tolerations"]}
    assert borne.keys() == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def test_a_more_important_pod_takes_the_place_of_others(
    api: Api, local_eks: LocalEks, namespace: str, marked: tuple[str, str], priorities: tuple[str, str]
) -> None:
    node, label = marked
    there: dict[str, Any] = {"nodeSelector": {label: "yes"}}
    low, high = priorities
    taken = pod("low", image=local_eks.image, container=devices(DEVICES), priorityClassName=low, **there)
    api.post(pods_path(namespace), taken)
    wait_phase(api, namespace, "low", "Running")
    api.post(
        pods_path(namespace),
        pod("patient", image=local_eks.image, container=devices(1), priorityClassName=low, **there),
    )
    urgent = pod("high", image=local_eks.image, container=devices(DEVICES), priorityClassName=high, **there)
    asked = api.post(pods_path(namespace), urgent)
    running = wait_phase(api, namespace, "high", "Running")

    assert asked["spec"]["priority"] == 1000
    assert running["spec"]["nodeName"] == node
    eventually_true(lambda: api.find(pods_path(namespace, "low")) is None, "the end of the one that gave way")
    assert api.get(pods_path(namespace, "patient"))["status"]["phase"] == "Pending"


def test_quotas_are_kept_by_priority(
    api: Api, local_eks: LocalEks, namespace: str, priorities: tuple[str, str]
) -> None:
    low, high = priorities
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [low]}]}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.post(path, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopeSelector": selector}})
    eventually_true(lambda: api.get(f"{path}/q").get("status", {}).get("used"), "the quota's first count")
    api.post(pods_path(namespace), pod("one", image=local_eks.image, priorityClassName=low))
    with pytest.raises(Refused) as refused:
        api.post(pods_path(namespace), pod("two", image=local_eks.image, priorityClassName=low))
    api.post(pods_path(namespace), pod("three", image=local_eks.image, priorityClassName=high))

    assert refused.value.code == 403
    assert "exceeded quota: q" in str(refused.value)
    eventually_true(lambda: api.get(f"{path}/q")["status"]["used"] == {"pods": "1"}, "the quota's count")


def test_a_budget_refuses_evictions_that_would_leave_too_few(api: Api, local_eks: LocalEks, namespace: str) -> None:
    policy = next(
        version["version"]
        for group in api.get("/apis")["groups"]
        if group["name"] == "policy"
        for version in sorted(group["versions"], key=lambda one: len(one["version"]))
    )
    api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("web", image=local_eks.image, replicas=1))
    path = f"/apis/policy/{policy}/namespaces/{namespace}/poddisruptionbudgets"
    api.post(
        path, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    )
    eventually_true(lambda: api.get(f"{path}/b").get("status", {}).get("currentHealthy") == 1, "a healthy pod")
    name = api.get(pods_path(namespace), labelSelector="app=web")["items"][0]["metadata"]["name"]

    def evict() -> Any:
        body = {"apiVersion": f"policy/{policy}", "kind": "Eviction", "metadata": {"name": name}}
        return api.post(f"{pods_path(namespace, name)}/eviction", body)

    with pytest.raises(Refused) as refused:
        evict()
    api.patch(f"{path}/b", {"spec": {"minAvailable": 0}})

    def evicted() -> bool:
        try:
            evict()
        except Refused as error:
            if error.code != 429:
                raise
            return False
        return True

    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    eventually_true(evicted, "the eviction")
    eventually_true(lambda: api.find(pods_path(namespace, name)) is None, "its end")


def jobs(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def job(name: str, *, image: str, code: int = 0, seconds: float = 0, **spec: Any) -> dict[str, Any]:
    inner = template(name, image=image, command=["sh", "-c", f"sleep {seconds}; exit {code}"])
    return {"metadata": {"name": name}, "spec": {"template": inner, **spec}}


def test_a_job_runs_as_often_as_it_says_and_then_goes(api: Api, local_eks: LocalEks, namespace: str) -> None:
    twice = job("twice", image=local_eks.image, parallelism=2, completions=2, ttlSecondsAfterFinished=3)
    api.post(jobs(namespace), twice)
    done = eventually_true(
        lambda: (found := api.find(jobs(namespace, "twice"))) and condition(found, "Complete") and found, "the job"
    )

    assert done["status"]["succeeded"] == 2
    eventually_true(lambda: api.find(jobs(namespace, "twice")) is None, "its end after its time to live")
    eventually_true(lambda: not api.get(pods_path(namespace))["items"], "the end of its pods")


def test_a_job_gives_up_when_it_failed_too_often_or_takes_too_long(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    api.post(jobs(namespace), job("fails", image=local_eks.image, code=1, backoffLimit=0))
    api.post(jobs(namespace), job("dawdles", image=local_eks.image, seconds=60, activeDeadlineSeconds=2))
    reasons = {}
    for name in ("fails", "dawdles"):
        found = eventually_true(
            lambda name=name: (one := api.get(jobs(namespace, name))) and condition(one, "Failed") and one, name
        )
        reasons[name] = next(one["reason"] for one in found["status"]["conditions"] if one["type"] == "Failed")

    assert reasons == {"fails": "BackoffLimitExceeded", "dawdles": "DeadlineExceeded"}


def test_an_indexed_job_numbers_its_pods_where_the_server_knows_of_it(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    """Indexed Jobs came with 1.21 (KEP-2214); an older server drops the field, and nothing may rely on it there."""
    minor = int("".join(filter(str.isdigit, api.get("/version")["minor"])))
    made = api.post(jobs(namespace), job("numbered", image=local_eks.image, completions=2, parallelism=2,
                                         completionMode="Indexed"))  # fmt: skip
    eventually_true(lambda: condition(api.get(jobs(namespace, "numbered")), "Complete") == "True", "the job")
    found = api.get(pods_path(namespace), labelSelector="job-name=numbered")["items"]
    numbers = sorted(
        one["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", "") for one in found
    )

    assert made["spec"].get("completionMode") == ("Indexed" if minor >= 22 else None)
    assert numbers == (["0", "1"] if minor >= 22 else ["", ""])


def test_a_daemon_set_has_a_pod_on_every_node_and_the_cordoned_too(
    api: Api, local_eks: LocalEks, namespace: str, marked: tuple[str, str]
) -> None:
    node, _ = marked
    inner = template("everywhere", image=local_eks.image, restartPolicy="Always")
    selector = {"matchLabels": {"app": "everywhere"}}
    expected = {one["metadata"]["name"] for one in api.get(NODES)["items"] if condition(one, "Ready") == "True"}
    api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    try:
        path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
        api.post(path, {"metadata": {"name": "everywhere"}, "spec": {"selector": selector, "template": inner}})
        eventually_true(
            lambda: api.get(f"{path}/everywhere").get("status", {}).get("numberReady") == len(expected), "all of them"
        )
        found = api.get(pods_path(namespace), labelSelector="app=everywhere")["items"]
    finally:
        api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})

    assert {one["spec"]["nodeName"] for one in found} == expected


def test_a_stateful_set_makes_its_pods_in_order_under_names_that_stay(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    inner = template("db", image=local_eks.image, restartPolicy="Always")
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": inner}
    api.post(path, {"metadata": {"name": "db"}, "spec": spec})
    second = eventually_true(lambda: api.find(pods_path(namespace, "db-1")), "the second pod")
    first = api.get(pods_path(namespace, "db-0"))
    api.delete(pods_path(namespace, "db-0"))
    again = eventually_true(
        lambda: (one := api.find(pods_path(namespace, "db-0"))) and one["metadata"]["uid"] != first["metadata"]["uid"],
        "the first pod again",
    )

    assert condition(first, "Ready") == "True"
    assert second["metadata"]["creationTimestamp"] >= first["metadata"]["creationTimestamp"]
    assert again


def test_pods_keep_away_from_each_other_when_they_say_so(api: Api, local_eks: LocalEks, namespace: str) -> None:
    term = {"labelSelector": {"matchLabels": {"group": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for index in range(2):
        api.post(
            pods_path(namespace),
            pod(f"apart-{index}", image=local_eks.image, labels={"group": "apart"}, affinity=apart),
        )
    places = {wait_phase(api, namespace, f"apart-{index}", "Running")["spec"]["nodeName"] for index in range(2)}

    assert len(places) == 2


def test_every_node_renews_its_lease(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

    def renewed() -> dict[str, str]:
        return {one["metadata"]["name"]: one["spec"]["renewTime"] for one in api.get(path)["items"]}

    nodes = set(ready_nodes(api))
    before = renewed()

    assert nodes <= before.keys()
    eventually_true(lambda: all(renewed().get(name, "") > before[name] for name in nodes), "a renewal of every node")


def test_a_pod_may_use_what_another_left_on_a_claimed_volume(api: Api, local_eks: LocalEks, namespace: str) -> None:
    """A volume that is there is bound to a claim by name, as the chart `storage` does it."""
    name = f"shared-{namespace}"
    host = {"path": "/tmp", "type": "Directory"}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": "shared"},
        "hostPath": host,
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    api.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
    try:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        api.post(path, {"metadata": {"name": "shared"}, "spec": claim})
        eventually_true(lambda: api.get(f"{path}/shared").get("status", {}).get("phase") == "Bound", "the claim")
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
        made = pod("uses", image=local_eks.image, command=["ls", "/shared"], container=mounts, volumes=volumes)
        api.post(pods_path(namespace), made)
        wait_phase(api, namespace, "uses", "Succeeded")
    finally:
        api.delete(f"/api/v1/persistentvolumes/{name}")


def test_a_deployment_replaces_its_pods_and_never_has_too_few(api: Api, local_eks: LocalEks, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    wanted = deployment("web", image=local_eks.image, replicas=2)
    wanted["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    api.post(path, wanted)
    eventually_true(lambda: api.get(f"{path}/web").get("status", {}).get("readyReplicas") == 2, "both pods")
    before = {one["metadata"]["uid"] for one in api.get(pods_path(namespace))["items"]}
    annotations = {"spec": {"template": {"metadata": {"annotations": {"again": "yes"}}}}}
    api.patch(f"{path}/web", annotations)
    fewest = 2

    def rolled() -> bool:
        nonlocal fewest
        status = api.get(f"{path}/web")["status"]
        fewest = min(fewest, status.get("readyReplicas", 0))
        now = [one for one in api.get(pods_path(namespace))["items"] if not one["metadata"].get("deletionTimestamp")]
        return status.get("updatedReplicas") == 2 and len(now) == 2 and not {p["metadata"]["uid"] for p in now} & before

    eventually_true(rolled, "the new pods")
    assert fewest == 2


def test_one_pod_is_entered_by_name_whatever_made_it(api: Api, local_eks: LocalEks, namespace: str) -> None:
    api.post(pods_path(namespace), pod("named", image=local_eks.image))
    ready = wait_ready(api, namespace, "named")
    node = ready["spec"]["nodeName"]
    chosen = api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={node},metadata.namespace={namespace}")["items"]

    assert [one["metadata"]["name"] for one in chosen] == ["named"]
    assert ready["status"]["hostIP"] != ready["status"]["podIP"]
