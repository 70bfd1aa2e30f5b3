"""The operator's driver on a real API server, with the rights of its chart and no more."""

import re
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from api_server import ApiServer
from hyperpod_jobs import hyperpod_job
from kubernetes_pki import Pki
from operated_jobs import POD_SPEC
from waiting import eventually

from distributions import ROOT
from holdfast_common import JOB_API, JOB_PLURAL, ClusterAccess, KubernetesError, Lease
from holdfast_operator.driver import (
    Cache,
    HyperPodReconciler,
    Logs,
    ProgressReader,
    Reconciler,
    check_definition,
    hyperpod_jobs_path,
    pod_trial,
    run_key,
)
from holdfast_operator.jobs import read_job

pytestmark = pytest.mark.kubernetes

TEMPLATES = ROOT / "containers" / "operator" / "chart" / "templates"
SYSTEM = "holdfast-system"
GROUPS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": f"/api/v1/namespaces/{SYSTEM}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/rolebindings",
}
MERGE = {"Content-Type": "application/merge-patch+json"}


class Cluster:
    """An API server with the chart's objects, four nodes and no kubelet: a pod runs when a test says so."""

    def __init__(self, directory: Path, binaries: Any) -> None:
        self.pki = Pki(directory / "pki")
        flags = ["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"]
        self.api = ApiServer(binaries=binaries, directory=directory, pki=self.pki, flags=flags)
        self.post("/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
        for name in ("access.yaml", "crd.yaml", "hyperpod.yaml"):
            text = re.sub(r"^{{- (if .*|end) }}$", "", (TEMPLATES / name).read_text(), flags=re.MULTILINE)
            text = text.replace("{{ .Release.Name }}", "op").replace("{{ .Release.Namespace }}", SYSTEM)
            for one in yaml.safe_load_all(text):
                self.post(GROUPS[one["kind"]], one)
        for number in range(4):
            self.post("/api/v1/nodes", {"kind": "Node", "metadata": {"name": f"n{number}"}})
        self.account = directory / "account"
        self.account.mkdir()
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.post(f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/op/token", asked)["status"]["token"]
        (self.account / "token").write_text(token)
        (self.account / "namespace").write_text(SYSTEM)
        (self.account / "ca.crt").write_bytes(Path(self.pki.authority).read_bytes())
        for path in (self.jobs(), hyperpod_jobs_path("default")):
            eventually(lambda p=path: self.api.request("GET", p)[0] == 200, "the new kind", within_s=60)  # type: ignore[misc]

    def jobs(self, name: str = "") -> str:
        return f"/apis/{JOB_API}/namespaces/default/{JOB_PLURAL}" + (f"/{name}" if name else "")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        status, answer = self.api.request("POST", path, body)
        assert status in (200, 201), answer
        return answer

    def get(self, path: str) -> Any:
        status, answer = self.api.request("GET", path)
        assert status == 200, answer
        return answer

    def patch(self, path: str, body: dict[str, Any]) -> None:
        status, answer = self.api.request("PATCH", path, body, **MERGE)
        assert status == 200, answer

    def create(self, name: str, **spec: Any) -> Any:
        base = {"nodes": {"size": 3, "spares": 1}, "template": {"spec": POD_SPEC}}
        body = {"apiVersion": JOB_API, "kind": "HoldfastJob", "metadata": {"name": name}, "spec": {**base, **spec}}
        return self.post(self.jobs(), body)

    def pods(self, name: str) -> dict[str, Any]:
        listed = self.get(f"/api/v1/namespaces/default/pods?labelSelector=holdfast.dev/job={name}")["items"]
        return {one["metadata"]["name"]: one for one in listed}

    def runs(self, pod: str, *, node: str) -> None:
        """Report what the scheduler and the kubelet would."""
        path = f"/api/v1/namespaces/default/pods/{pod}"
        binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        self.post(f"{path}/binding", binding)
        self.patch(f"{path}/status", {"status": {"phase": "Running"}})

    def ends(self, pod: str, code: int, message: str = "") -> None:
        end = {"exitCode": code, "reason": "Error", "message": message, "finishedAt": "2026-01-01T00:00:00Z"}
        container = {"name": "train", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Failed", "containerStatuses": [{**container, "state": {"terminated": end}}]}
        self.patch(f"/api/v1/namespaces/default/pods/{pod}/status", {"status": status})


class Operator:
    """The driver, with a pass when a test asks for one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.access = ClusterAccess(endpoint=cluster.api.url, account=cluster.account)
        self.lines: list[str] = []
        self.cache = Cache(self.access, changed=lambda: None, report=self.lines.append, serves_hyperpod=True)
        self.cache.start()
        eventually(lambda: self.cache.is_complete, "the first lists", within_s=30)
        self.logs = Logs(self.access, self.cache, changed=lambda: None, may_read=lambda: True, report=self.lines.append)
        self.reconciler = Reconciler(
            self.access,
            cache=self.cache,
            key=run_key(self.access),
            progress=ProgressReader(self.cache, changed=lambda: None),
            logs=self.logs,
            may_write=lambda: True,
            report=self.lines.append,
        )
        self.hyperpod = HyperPodReconciler(
            self.access, cache=self.cache, may_write=lambda: True, report=self.lines.append
        )

    def carry_over(self) -> None:
        for job in self.cache.hyperpod_jobs():
            self.hyperpod.reconcile(job)

    def settle(self, name: str) -> None:
        """Pass by pass, until the cache has the last one's writes and nothing is left to do."""
        for _ in range(12):
            wanted = self.cluster.get(self.cluster.jobs(name))
            version = wanted["metadata"]["resourceVersion"]
            pods = {pod: one["metadata"]["resourceVersion"] for pod, one in self.cluster.pods(name).items()}
            eventually(lambda v=version, p=pods: self._knows(name, v, p), "the watch", within_s=30)  # type: ignore[misc]
            self.reconciler.reconcile(self.job(name))
            again = {pod: one["metadata"]["resourceVersion"] for pod, one in self.cluster.pods(name).items()}
            now = self.cluster.get(self.cluster.jobs(name))["metadata"]["resourceVersion"]
            if (again, now) == (pods, version):
                return
        raise AssertionError(f"job {name} does not settle: {self.lines[-8:]}")

    def job(self, name: str) -> Any:
        return next((one for one in self.cache.jobs() if one["metadata"]["name"] == name), None)

    def _knows(self, name: str, version: str, pods: dict[str, str]) -> bool:
        known = self.job(name)
        there = {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in self.cache.pods_of(("default", name))
        }
        return known is not None and known["metadata"]["resourceVersion"] == version and there == pods


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), request.getfixturevalue("binaries"))
    yield made
    made.api.stop()


class Kubelet:
    """The part of a node's kubelet that the API server asks for logs; ``lines`` by pod, ``asked`` are the queries."""

    def __init__(self, pki: Pki) -> None:
        self.lines: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                kubelet.asked.append(dict(parse_qsl(address.query)))
                body = kubelet.lines.get(address.path.removeprefix("/containerLogs/"), "").encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pki.sign("server"))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def kubelet(cluster: Cluster) -> Iterator[Kubelet]:
    made = Kubelet(cluster.pki)
    address = {"type": "InternalIP", "address": "127.0.0.1"}
    status = {**_READY["status"], "addresses": [address], "daemonEndpoints": {"kubeletEndpoint": {"Port": made.port}}}
    for number in range(4):
        cluster.patch(f"/api/v1/nodes/n{number}/status", {"status": status})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def operator(cluster: Cluster) -> Iterator[Operator]:
    made = Operator(cluster)
    yield made
    made.logs.close()


def test_a_pod_that_the_api_server_refuses_for_ever_is_found_before_its_job_exists(operator: Operator) -> None:
    metadata, container = (
        {"name": "tried", "namespace": "default", "uid": ""},
        {"name": "train", "image": "train:1", "args": ["t.py"]},
    )

    def tried(template: dict[str, Any]) -> str:
        job = {"metadata": metadata, "spec": {"nodes": {"size": 1}, "template": template}}
        return pod_trial(operator.access)(read_job(job))

    assert "cannot be handled as a Pod" in tried(
        {"metadata": {"annotations": {"x": True}}, "spec": {"containers": [container]}}
    )
    assert "imagePullPolicy" in tried({"spec": {"containers": [{**container, "imagePullPolicy": "Sometimes"}]}})
    assert tried({"spec": {"containers": [container], "serviceAccountName": "made-later"}}) == ""
    assert tried({"spec": {"containers": [container]}}) == ""
    assert operator.cluster.pods("tried") == {}


def test_a_job_gets_its_pods_service_and_secret_once(cluster: Cluster, operator: Operator) -> None:
    cluster.create("one")
    operator.settle("one")
    assert sorted(cluster.pods("one")) == ["one-0", "one-1", "one-2", "one-3"]
    service = cluster.get("/api/v1/namespaces/default/services/one")
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    assert cluster.get("/api/v1/namespaces/default/secrets/one-run")["data"].keys() == {"token"}
    created = [line for line in operator.lines if line.startswith("job default/one:") and line.endswith("created")]
    assert len(created) == 4
    status = cluster.get(cluster.jobs("one"))["status"]
    assert (status["state"], status["selector"]) == ("Pending", "holdfast.dev/job=one")
    scale = cluster.get(f"{cluster.jobs('one')}/status")
    assert scale["metadata"]["name"] == "one"


def test_a_failed_launcher_is_charged_once_and_replaced_under_its_name(cluster: Cluster, operator: Operator) -> None:
    cluster.create("two")
    operator.settle("two")
    for number in range(4):
        cluster.runs(f"two-{number}", node=f"n{number}")
        cluster.patch(f"/api/v1/nodes/n{number}/status", _READY)
    operator.settle("two")
    before = cluster.pods("two")
    assert cluster.get(cluster.jobs("two"))["status"]["state"] == "Running"
    cluster.ends("two-1", 137)

    def replaced() -> bool:
        operator.settle("two")
        now = cluster.pods("two")
        return "two-1" in now and now["two-1"]["metadata"]["uid"] != before["two-1"]["metadata"]["uid"]

    eventually(replaced, "another pod", within_s=30)
    now = cluster.pods("two")
    assert {name: one["metadata"]["uid"] for name, one in now.items() if name != "two-1"} == {
        name: one["metadata"]["uid"] for name, one in before.items() if name != "two-1"
    }
    assert cluster.get(cluster.jobs("two"))["status"]["restarts"] == {"launchers": 1, "jobs": 0}


def test_a_hyperpodpytorchjob_runs_as_a_holdfastjob_with_the_rights_of_the_chart_and_goes_with_it(
    cluster: Cluster, operator: Operator
) -> None:
    path = hyperpod_jobs_path("default", "llama")
    body = hyperpod_job(policy={"ttlSecondsAfterFinished": -1})
    cluster.post(hyperpod_jobs_path("default"), {**body, "metadata": {"name": "llama"}})
    check_definition(operator.access.client())

    def status() -> Any:
        operator.carry_over()
        return cluster.get(path).get("status")

    def has_appeared() -> bool:
        operator.carry_over()
        return operator.job("llama-pods") is not None

    eventually(has_appeared, "the HoldfastJob", within_s=30)
    operator.settle("llama-pods")
    for number in range(2):
        cluster.runs(f"llama-pods-{number}", node=f"n{number}")
    operator.settle("llama-pods")
    eventually(
        lambda: [one["type"] for one in status()["conditions"] if one["status"] == "True"][-1] == "Running",
        "its state",
        within_s=30,
    )
    pod = cluster.pods("llama-pods")["llama-pods-0"]
    assert pod["metadata"]["labels"]["HPJob"] == "llama"
    variables = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (variables["PET_NNODES"], variables["PET_NPROC_PER_NODE"]) == ("2", "8")
    (owner,) = cluster.get(cluster.jobs("llama-pods"))["metadata"]["ownerReferences"]
    assert owner["uid"] == cluster.get(path)["metadata"]["uid"]
    cluster.patch(path, {"spec": {"runPolicy": {"suspend": True}}})

    def suspended() -> bool:
        operator.carry_over()
        return bool(cluster.get(cluster.jobs("llama-pods"))["spec"]["suspend"])

    eventually(suspended, "its suspension", within_s=30)


_READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x", "message": "x"}]}}


def test_an_invalid_job_has_the_words_of_admission_in_its_condition(cluster: Cluster, operator: Operator) -> None:
    cluster.create("bad", nodes={"size": 3, "spares": 3}, processesPerNode="8", oops=1)
    operator.settle("bad")
    (condition,) = cluster.get(cluster.jobs("bad"))["status"]["conditions"]
    assert condition["type"] == "Invalid"
    assert len(condition["message"].splitlines()) == 3
    assert cluster.pods("bad") == {}
    cluster.patch(cluster.jobs("bad"), {"spec": {"nodes": {"spares": 1}, "processesPerNode": 8, "oops": None}})
    operator.settle("bad")
    assert len(cluster.pods("bad")) == 4


def test_a_pod_of_another_owner_is_left_alone_and_named(cluster: Cluster, operator: Operator) -> None:
    body = {"metadata": {"name": "taken-2"}, "spec": {"containers": [{"name": "x", "image": "i"}]}}
    other = cluster.post("/api/v1/namespaces/default/pods", body)
    cluster.create("taken")
    operator.settle("taken")
    found = cluster.get(cluster.jobs("taken"))["status"]["conditions"]
    assert 'pod taken-2 was refused: pods "taken-2" already exists' in str(found)
    there = cluster.get("/api/v1/namespaces/default/pods/taken-2")
    assert there["metadata"]["uid"] == other["metadata"]["uid"]


def test_a_status_that_changed_meanwhile_is_not_overwritten(cluster: Cluster, operator: Operator) -> None:
    cluster.create("late")
    operator.settle("late")
    stale = operator.job("late")
    client = operator.access.client()
    client.patch(f"{cluster.jobs('late')}/status", {"status": {"step": 7}})
    body = {"metadata": {"resourceVersion": stale["metadata"]["resourceVersion"]}, "status": {"step": 6}}
    with pytest.raises(KubernetesError) as error:
        client.patch(f"{cluster.jobs('late')}/status", body)
    assert error.value.code == 409


def test_the_size_is_that_of_the_scale_subresource(cluster: Cluster, operator: Operator) -> None:
    cluster.create("grows", nodes={"min": 3, "max": 5, "size": 3})
    operator.settle("grows")
    assert len(cluster.pods("grows")) == 3
    path = f"{cluster.jobs('grows')}/scale"
    assert cluster.get(path)["spec"]["replicas"] == 3
    cluster.patch(path, {"spec": {"replicas": 4}})
    operator.settle("grows")
    assert len(cluster.pods("grows")) == 4


def test_one_of_two_operators_holds_the_lease_and_the_other_takes_it_when_it_no_longer_changes(
    cluster: Cluster, operator: Operator
) -> None:
    clock = [100.0]
    first, second = (
        Lease(
            operator.access.client,
            name="holdfast-operator",
            namespace=operator.access.namespace,
            identity=name,
            report=operator.lines.append,
            clock=lambda: clock[0],
        )
        for name in ("a", "b")
    )
    first.renew()
    second.renew()
    assert (first.is_held, second.is_held) == (True, False)
    clock[0] += 9
    first.renew()
    second.renew()
    clock[0] += 9
    second.renew()
    assert (first.is_held, second.is_held) == (True, False)
    clock[0] += 7
    second.renew()
    assert (first.is_held, second.is_held) == (False, True)
    first.renew()
    assert not first.is_held


def test_a_rule_reads_logs_through_the_api_server_and_restarts_the_job(
    cluster: Cluster, operator: Operator, kubelet: Kubelet
) -> None:
    rule = {"name": "oom", "logPattern": ".*out of memory", "faultOnMatch": True}
    cluster.create("logged", nodes={"size": 2}, logRules=[rule])
    operator.settle("logged")
    for number in range(2):
        cluster.runs(f"logged-{number}", node=f"n{number}")
    operator.settle("logged")
    kubelet.lines["default/logged-1/train"] = "2026-01-01T00:00:07.123456789Z [rank 8] step 1\n"
    operator.logs.look()
    operator.logs.look()
    bounds = {"timestamps": "true", "tailLines": "10000", "limitBytes": "1048576"}
    assert [one for one in kubelet.asked if "sinceTime" in one] == [{**bounds, "sinceTime": "2026-01-01T00:00:07Z"}]
    assert kubelet.asked[0] == bounds
    operator.settle("logged")
    assert cluster.get(cluster.jobs("logged"))["status"]["restarts"]["launchers"] == 0
    kubelet.lines["default/logged-1/train"] += "2026-01-01T00:00:08.123456789Z [rank 8] CUDA out of memory\n"
    operator.logs.look()
    operator.settle("logged")
    assert all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods("logged").values())
    status = cluster.get(cluster.jobs("logged"))["status"]
    assert status["restarts"] == {"launchers": 1, "jobs": 0}
    assert status["stops"][-1]["what"] == (
        "log rule oom is FAULTED: a line matched: [rank 8] CUDA out of memory"
    )  # fmt: skip
