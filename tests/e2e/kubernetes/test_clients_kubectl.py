"""Unmodified kubectl against a local EKS, in each version that AWS's Kubernetes versions come with.

What each command has to print is said by kubectl's reference (kubernetes.io/docs/reference/kubectl, read 2026-11-23).
"""

import dataclasses
import json
import re
from pathlib import Path

import kubernetes_clients
import pytest
from kubernetes_http import Api
from kubernetes_things import deployment, pod, ready_nodes, wait_ready
from local_eks import LocalEks, Person, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

MINORS = list(kubernetes_clients.layers())


@pytest.fixture(params=MINORS)
def user(request: pytest.FixtureRequest, admin: Person) -> Person:
    """The administrator, with a kubectl of each version."""
    return dataclasses.replace(admin, minor=request.param)


def test_the_network_of_the_clients_leads_nowhere_else(admin: Person, local_eks: LocalEks) -> None:
    there = admin.tried("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "10", local_eks.endpoint)
    nobody = admin.tried("curl", "-sS", "--max-time", "10", "http://192.0.2.1/")

    assert there.stdout != "000"
    assert nobody.returncode == 7  # curl(1): failed to connect to host
    assert "after 0 ms" in nobody.stderr


def test_kubectl_says_which_version_it_is_and_which_it_found(user: Person) -> None:
    found = json.loads(user.kubectl("version", "-o", "json"))

    assert found["clientVersion"]["gitVersion"].startswith(f"v{user.minor}.")
    assert re.fullmatch(r"v1\.\d+\.\d+.*", found["serverVersion"]["gitVersion"])


def test_objects_are_applied_shown_and_deleted(user: Person, local_eks: LocalEks, namespace: str) -> None:
    here = ("-n", namespace)
    manifest = json.dumps(pod("web", image=local_eks.image, container={"workingDir": "/tmp"}))

    assert user.kubectl("apply", *here, "-f", "-", text=manifest) == "pod/web created\n"
    assert user.kubectl("apply", *here, "-f", "-", text=manifest) == "pod/web unchanged\n"
    waited = user.kubectl("wait", *here, "--for=condition=Ready", "pod/web", "--timeout=60s")
    wide = user.kubectl("get", *here, "pods", "-o", "wide")
    described = user.kubectl("describe", *here, "pod", "web")
    changed = manifest.replace('"labels": {', '"labels": {"colour": "blue", ')
    assert user.kubectl("apply", *here, "-f", "-", text=changed) == "pod/web configured\n"
    chosen = user.kubectl("get", *here, "pods", "-l", "colour=blue", "-o", "name")
    on_server = user.kubectl("apply", *here, "--server-side", "--force-conflicts", "-f", "-", text=manifest)
    deleted = user.kubectl("delete", *here, "pod", "web")

    assert waited == "pod/web condition met\n"
    assert wide.split()[:8] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert wide.splitlines()[1].split()[:4] == ["web", "1/1", "Running", "0"]
    assert re.search(r"Successfully assigned \S+/web to \S+", described)
    assert "Started container main" in described or "Container started" in described
    assert re.search(r"^Labels:\s+app=web$", described, re.MULTILINE)
    assert chosen == "pod/web\n"
    assert on_server == "pod/web serverside-applied\n"
    assert deleted.startswith('pod "web" deleted')
    assert user.get(*here, "pods")["items"] == []


def test_logs_are_read_and_followed(user: Person, local_eks: LocalEks, api: Api, namespace: str) -> None:
    here = ("-n", namespace)
    # What is run in a container ends with it: whoever says go is given the time to end first.
    talk = ["sh", "-c", "echo one; echo two; until [ -e /tmp/go ]; do sleep 0.1; done; sleep 2; echo three; sleep 1"]
    user.kubectl("create", *here, "-f", "-", text=json.dumps(pod("talks", image=local_eks.image, command=talk)))
    wait_ready(api, namespace, "talks")

    with user.popen(str(kubernetes_clients.kubectl(user.minor)), "logs", *here, "--follow", "talks") as following:
        assert following.stdout is not None
        first = [following.stdout.readline() for _ in range(2)]
        user.kubectl("exec", *here, "talks", "--", "touch", "/tmp/go")
        rest, _ = following.communicate(timeout=30)
    last = user.kubectl("logs", *here, "--tail=1", "talks")
    stamped = user.kubectl("logs", *here, "--timestamps", "talks")
    missing = user.tried_kubectl("logs", *here, "nobody")

    assert first == ["one\n", "two\n"]
    assert rest == "three\n"
    assert last == "three\n"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z one", stamped.splitlines()[0])
    assert missing.returncode == 1
    assert re.search(r'from server \(NotFound\): pods "nobody" not found', missing.stderr)


def test_commands_run_and_files_are_copied(
    user: Person, local_eks: LocalEks, api: Api, namespace: str, tmp_path: Path
) -> None:
    here = ("-n", namespace)
    user.kubectl("create", *here, "-f", "-", text=json.dumps(pod("box", image=local_eks.image)))
    wait_ready(api, namespace, "box")
    source, back = tmp_path / "sent", tmp_path / "back"
    source.write_bytes(bytes(range(256)) * 4096)

    piped = user.kubectl("exec", "-i", *here, "box", "--", "tr", "a-z", "A-Z", text="from the terminal")
    failed = user.tried_kubectl("exec", *here, "box", "--", "sh", "-c", "echo told >&2; exit 7")
    user.kubectl("cp", *here, str(source), "box:/tmp/there")
    user.kubectl("cp", *here, "box:/tmp/there", str(back))
    attached = user.kubectl("get", *here, "pod", "box", "-o", "jsonpath={.status.phase}")

    assert piped == "FROM THE TERMINAL"
    assert failed.returncode == 7  # kubectl ends as the command did
    assert failed.stderr == "told\ncommand terminated with exit code 7\n"
    assert back.read_bytes() == source.read_bytes()
    assert attached == "Running"


def test_a_port_of_a_pod_is_brought_to_the_user(user: Person, local_eks: LocalEks, api: Api, namespace: str) -> None:
    here = ("-n", namespace)
    serve = ["python3", "-m", "http.server", "8000", "--directory", "/tmp"]
    probe = {"readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1}}
    user.kubectl(
        "create", *here, "-f", "-", text=json.dumps(pod("web", image=local_eks.image, command=serve, container=probe))
    )
    wait_ready(api, namespace, "web")

    forward = user.popen(str(kubernetes_clients.kubectl(user.minor)), "port-forward", *here, "pod/web", ":8000")
    try:
        assert forward.stdout is not None
        told = forward.stdout.readline()
        port = re.fullmatch(r"Forwarding from 127\.0\.0\.1:(\d+) -> 8000\n", told)
        assert port, told
        answers = [user.run("curl", "-sS", "--max-time", "20", f"http://127.0.0.1:{port[1]}/") for _ in range(2)]
    finally:
        forward.terminate()
        forward.communicate(timeout=10)

    assert all("Directory listing" in answer for answer in answers)


def test_a_node_is_cordoned_drained_and_given_back(user: Person, local_eks: LocalEks, api: Api, namespace: str) -> None:
    here = ("-n", namespace)
    user.kubectl("create", *here, "-f", "-", text=json.dumps(deployment("web", image=local_eks.image, replicas=1)))
    user.kubectl("rollout", "status", *here, "deployment/web", "--timeout=60s")
    node = user.get(*here, "pods")["items"][0]["spec"]["nodeName"]

    try:
        cordoned = user.kubectl("cordon", node)
        shown = user.kubectl("get", "node", node)
        drained = user.kubectl(
            "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s"
        )
        user.kubectl("rollout", "status", *here, "deployment/web", "--timeout=60s")
        moved = {one["spec"]["nodeName"] for one in user.get(*here, "pods")["items"]}
    finally:
        given_back = user.kubectl("uncordon", node)

    assert cordoned == f"node/{node} cordoned\n"
    assert "Ready,SchedulingDisabled" in shown
    assert re.search(rf"^pod/web-\S+ evicted$\n(.*\n)*node/{node} drained$", drained, re.MULTILINE)
    assert node not in moved
    assert given_back == f"node/{node} uncordoned\n"
    assert node in ready_nodes(api)


def test_rights_are_told(user: Person, viewer: Person, namespace: str) -> None:
    looking = dataclasses.replace(viewer, minor=user.minor)
    may = user.tried_kubectl("auth", "can-i", "delete", "pods", "-n", namespace)
    may_not = looking.tried_kubectl("auth", "can-i", "delete", "pods", "-n", namespace)
    may_look = looking.tried_kubectl("auth", "can-i", "list", "pods", "-n", namespace)

    assert (may.returncode, may.stdout) == (0, "yes\n")
    assert (may_not.returncode, may_not.stdout) == (1, "no\n")
    assert (may_look.returncode, may_look.stdout) == (0, "yes\n")


def test_top_says_that_there_is_no_metrics_server(user: Person, api: Api) -> None:
    if "metrics.k8s.io" in {group["name"] for group in api.get("/apis")["groups"]}:
        pytest.skip("a metrics server is there")

    for what in ("nodes", "pods"):
        done = user.tried_kubectl("top", what)
        assert (done.returncode, done.stderr) == (1, "error: Metrics API not available\n")


def test_workloads_are_scaled_rolled_out_and_back(user: Person, local_eks: LocalEks, namespace: str) -> None:
    here = ("-n", namespace)
    wanted = deployment("web", image=local_eks.image, replicas=1)
    user.kubectl("create", *here, "-f", "-", text=json.dumps(wanted))

    scaled = user.kubectl("scale", *here, "deployment/web", "--replicas=2")
    user.kubectl("rollout", "status", *here, "deployment/web", "--timeout=60s")
    user.kubectl("set", "env", *here, "deployment/web", "COLOUR=blue")
    rolled = user.kubectl("rollout", "status", *here, "deployment/web", "--timeout=60s")
    undone = user.kubectl("rollout", "undo", *here, "deployment/web")
    user.kubectl("rollout", "status", *here, "deployment/web", "--timeout=60s")
    compared = user.tried_kubectl("diff", *here, "-f", "-", text=json.dumps(wanted))
    left = user.get(*here, "deployment", "web")["spec"]["template"]["spec"]["containers"][0]

    assert scaled == "deployment.apps/web scaled\n"
    assert rolled.endswith('deployment "web" successfully rolled out\n')
    assert undone == "deployment.apps/web rolled back\n"
    assert "env" not in left
    assert compared.returncode == 1  # kubectl diff: 1 where differences were found
    assert re.search(r"^-  replicas: 2\n\+  replicas: 1$", compared.stdout, re.MULTILINE)


def test_a_pod_that_cannot_be_pulled_backs_off(user: Person, namespace: str) -> None:
    here = ("-n", namespace)
    user.kubectl("create", *here, "-f", "-", text=json.dumps(pod("far", image="registry.invalid/nothing:1")))

    def waiting() -> bool:
        listed = user.get(*here, "pod", "far")["status"].get("containerStatuses") or [{}]
        return bool(listed[0].get("state", {}).get("waiting", {}).get("reason") == "ImagePullBackOff")

    eventually_true(waiting, "a back-off")
    assert "ImagePullBackOff" in user.kubectl("get", *here, "pod", "far")
