"""What charts, operators and jobs take for granted of pods on nodes: names, volumes, tokens, probes, signals, ends.

Each behaviour is a row of docs/reference/kubernetes-api.md, with its source; everything is asked by plain HTTPS.
"""

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kubernetes_http import Api
from kubernetes_things import STAYS, condition, pod, pods_path, wait_phase, wait_ready
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes]


def log(api: Api, namespace: str, name: str, **query: str) -> str:
    return api.text(f"{pods_path(namespace, name)}/log", **query)


def said(api: Api, namespace: str, made: dict[str, Any]) -> str:
    """What a pod printed that ran to a good end."""
    api.post(pods_path(namespace), made)
    wait_phase(api, namespace, made["metadata"]["name"], "Succeeded")
    return log(api, namespace, made["metadata"]["name"])


def ended(api: Api, namespace: str, name: str) -> Any:
    """How the container of a pod ended."""

    def over() -> Any:
        statuses = api.get(pods_path(namespace, name))["status"].get("containerStatuses") or [{}]
        return statuses[0].get("state", {}).get("terminated")

    return eventually_true(over, f"the end of {name}")


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": {"job": name}, **spec}}


LOOK_UP = """
import socket, sys, time
for _ in range(100):
    found = []
    for name in sys.argv[1:]:
        try:
            found.append(sorted({info[4][0] for info in socket.getaddrinfo(name, 0, socket.AF_INET)}))
        except OSError:
            found.append([])
    if all(found):
        break
    time.sleep(0.2)
print(found)
"""


def test_pods_of_a_headless_service_have_names_before_they_are_ready(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    """Ranks of a job find each other so: `hostname` and `subdomain`, and publishNotReadyAddresses."""
    services = f"/api/v1/namespaces/{namespace}/services"
    api.post(services, service("ranks", clusterIP="None", publishNotReadyAddresses=True))
    never = {"readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}}
    for index in range(2):
        name = f"rank-{index}"
        made = pod(
            name, image=local_eks.image, labels={"job": "ranks"}, hostname=name, subdomain="ranks", container=never
        )
        api.post(pods_path(namespace), made)
    addresses = [wait_phase(api, namespace, f"rank-{index}", "Running")["status"]["podIP"] for index in range(2)]
    names = ["rank-0.ranks", f"rank-1.ranks.{namespace}.svc.cluster.local", "ranks"]
    asker = pod("asks", image=local_eks.image, command=["python3", "-c", LOOK_UP, *names])

    assert said(api, namespace, asker).strip() == str([[addresses[0]], [addresses[1]], sorted(addresses)])
    assert condition(api.get(pods_path(namespace, "rank-0")), "Ready") == "False"


def test_a_service_leads_to_pods_that_are_ready_and_to_no_others(api: Api, local_eks: LocalEks, namespace: str) -> None:
    api.post(f"/api/v1/namespaces/{namespace}/services", service("web", ports=[{"port": 80, "targetPort": 8000}]))
    serve = ["python3", "-c", "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)"]
    ready = {"readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1}}
    never = {"readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}}
    for name, probe in (("good", ready), ("bad", never)):
        api.post(
            pods_path(namespace),
            pod(name, image=local_eks.image, labels={"job": "web"}, command=serve, container=probe),
        )
    address = wait_ready(api, namespace, "good")["status"]["podIP"]
    wait_phase(api, namespace, "bad", "Running")

    def behind() -> list[str]:
        subsets = api.get(f"/api/v1/namespaces/{namespace}/endpoints/web").get("subsets") or []
        return [one["ip"] for subset in subsets for one in subset.get("addresses") or []]

    eventually_true(lambda: behind() == [address], "the endpoint")
    # Each node's kube-proxy learns of an endpoint in its own time; until then it refuses.
    asks = """
import time, urllib.request
for _ in range(100):
    try:
        print(urllib.request.urlopen("http://web/", timeout=20).status)
        break
    except OSError:
        time.sleep(0.2)
"""
    assert said(api, namespace, pod("asks", image=local_eks.image, command=["python3", "-c", asks])) == "200\n"


def test_a_pod_is_told_about_itself(api: Api, local_eks: LocalEks, namespace: str) -> None:
    fields = {"NAME": "metadata.name", "NODE": "spec.nodeName", "IP": "status.podIP", "APP": "metadata.labels['app']"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    env.append({"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}})
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    made = pod(
        "self",
        image=local_eks.image,
        command=["sh", "-c", "echo $NAME $NODE $IP $APP $LIMIT $(SPELLED); cat /info/labels"],
        container={
            "env": [*env, {"name": "SPELLED", "value": "$(NAME)!"}],
            "resources": {"limits": {"memory": "256Mi"}},
            "volumeMounts": [{"name": "info", "mountPath": "/info"}],
            "args": [],
        },
        volumes=[{"name": "info", "downwardAPI": {"items": items}}],
    )
    printed = said(api, namespace, made)
    found = api.get(pods_path(namespace, "self"))

    assert printed.splitlines()[0].split() == [
        *("self", found["spec"]["nodeName"], found["status"]["podIP"], "self", "256", "self!")
    ]
    assert 'app="self"' in printed


def test_volumes_hold_what_they_say(api: Api, local_eks: LocalEks, namespace: str) -> None:
    core = f"/api/v1/namespaces/{namespace}"
    api.post(f"{core}/configmaps", {"metadata": {"name": "conf"}, "data": {"a": "configured"}})
    secret = base64.b64encode(b"hidden").decode()
    api.post(f"{core}/secrets", {"metadata": {"name": "keys"}, "data": {"k": secret}})
    volumes: list[dict[str, Any]] = [
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {"name": "none", "configMap": {"name": "not-there", "optional": True}},
        {"name": "shared", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/etc", "type": "Directory"}},
    ]
    mounts: list[dict[str, Any]] = [{"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes]
    mounts[-1]["readOnly"] = True
    look = (
        "cat /v/conf/a /v/keys/k; echo; stat -Lc %a /v/keys/k; ls /v/none | wc -l; cat /v/shared/left; "
        "stat -fc %T /v/memory; test -e /v/host/passwd; touch /v/host/x 2>/dev/null || echo read-only; echo $FROM"
    )
    made = pod(
        "holds",
        image=local_eks.image,
        command=["sh", "-c", look],
        container={"volumeMounts": mounts, "envFrom": [{"configMapRef": {"name": "conf"}}],
                   "env": [{"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}]},
        volumes=volumes,
        initContainers=[
            {
                "name": "first",
                "image": local_eks.image,
                "command": ["sh", "-c", "echo left by the first > /v/shared/left"],
                "volumeMounts": [mounts[3]],
            }
        ],
    )  # fmt: skip

    assert said(api, namespace, made).splitlines() == [
        *("configuredhidden", "400", "0", "left by the first", "tmpfs", "read-only", "hidden")
    ]


def test_init_containers_run_one_after_the_other_and_a_failing_one_holds_the_pod(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    inits = [
        {"name": name, "image": local_eks.image, "command": ["sh", "-c", command]}
        for name, command in (("one", "exit 0"), ("two", "exit 3"), ("three", "exit 0"))
    ]
    api.post(pods_path(namespace), pod("held", image=local_eks.image, initContainers=inits))
    eventually_true(lambda: api.get(pods_path(namespace, "held"))["status"]["phase"] == "Failed", "its failure")
    states = api.get(pods_path(namespace, "held"))["status"]["initContainerStatuses"]

    assert states[0]["state"]["terminated"]["exitCode"] == 0
    assert states[1]["state"]["terminated"]["exitCode"] == 3
    assert "terminated" not in states[2]["state"]


def test_a_token_is_projected_and_lets_the_pod_ask_the_api_server(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    """Pod Identity hangs on it too: a token for an audience, kept fresh in a file."""
    sources = [{"serviceAccountToken": {"audience": "pods.eks.amazonaws.com", "expirationSeconds": 3600, "path": "t"}}]
    ask = (
        "import base64, json, ssl, urllib.error, urllib.request as u\n"
        "part = open('/tokens/t').read().split('.')[1]\n"
        "print(json.loads(base64.urlsafe_b64decode(part + '=' * (-len(part) % 4)))['aud'])\n"
        "at = '/var/run/secrets/kubernetes.io/serviceaccount'\n"
        "context = ssl.create_default_context(cafile=at + '/ca.crt')\n"
        "bearer = {'Authorization': 'Bearer ' + open(at + '/token').read()}\n"
        "url = 'https://kubernetes.default.svc/api/v1/namespaces/' + open(at + '/namespace').read() + '/pods'\n"
        "try: u.urlopen(u.Request(url, headers=bearer), context=context, timeout=20)\n"
        "except urllib.error.HTTPError as error: print(error.code, json.load(error)['message'])\n"
    )
    made = pod(
        "asks",
        image=local_eks.image,
        command=["python3", "-c", ask],
        container={"volumeMounts": [{"name": "tokens", "mountPath": "/tokens"}]},
        volumes=[{"name": "tokens", "projected": {"sources": sources}}],
    )
    audience, refusal = said(api, namespace, made).splitlines()

    assert audience == "['pods.eks.amazonaws.com']"
    assert refusal.startswith("403 pods is forbidden: ")
    assert f'"system:serviceaccount:{namespace}:default" cannot list resource "pods"' in refusal


def test_probes_say_when_a_pod_has_started_and_is_ready(api: Api, local_eks: LocalEks, namespace: str) -> None:
    command = ["sh", "-c", f"touch /tmp/alive; sleep 1; touch /tmp/ready; {STAYS[2]}"]

    def probe(file: str, **more: Any) -> dict[str, Any]:
        return {"exec": {"command": ["test", "-e", file]}, "periodSeconds": 1, "failureThreshold": 1, **more}

    container = {
        "startupProbe": probe("/tmp/alive", failureThreshold=30),
        "readinessProbe": probe("/tmp/ready"),
        "livenessProbe": probe("/tmp/alive"),
    }
    made = pod("probed", image=local_eks.image, command=command, container=container, restartPolicy="Always")
    api.post(pods_path(namespace), made)
    wait_ready(api, namespace, "probed")
    state = api.get(pods_path(namespace, "probed"))["status"]["containerStatuses"][0]

    assert (state["started"], state["restartCount"]) == (True, 0)


def test_a_container_that_is_not_alive_is_started_again(api: Api, local_eks: LocalEks, namespace: str) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1, "initialDelaySeconds": 1}
    made = pod("dead", image=local_eks.image, container={"livenessProbe": probe}, restartPolicy="Always")
    api.post(pods_path(namespace), made)

    def restarted() -> Any:
        states = api.get(pods_path(namespace, "dead"))["status"].get("containerStatuses") or [{"restartCount": 0}]
        return states[0] if states[0]["restartCount"] else None

    eventually_true(restarted, "a restart")
    events = api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector="involvedObject.name=dead")["items"]
    assert {"Unhealthy", "Killing"} <= {event["reason"] for event in events}


def test_a_pod_is_told_to_go_and_has_its_grace(api: Api, local_eks: LocalEks, namespace: str) -> None:
    """preStop, then SIGTERM, then SIGKILL when the grace is over; the pod is gone when its container is."""
    polite = ["sh", "-c", "trap 'echo told; sleep 1; echo done; exit 0' TERM; while :; do sleep 0.1; done"]
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo hooked > /proc/1/fd/1"]}}}}
    made = pod("polite", image=local_eks.image, command=polite, container=hook, terminationGracePeriodSeconds=30)
    api.post(pods_path(namespace), {**made, "metadata": {**made["metadata"], "finalizers": ["holdfast.dev/test"]}})
    wait_phase(api, namespace, "polite", "Running")
    with ThreadPoolExecutor(1) as aside:
        follows = aside.submit(log, api, namespace, "polite", follow="true")
        time.sleep(0.5)  # the containers of a deleted pod go, and their logs with them
        api.delete(pods_path(namespace, "polite"))
        printed = follows.result()
    state = ended(api, namespace, "polite")
    api.patch(pods_path(namespace, "polite"), {"metadata": {"finalizers": None}})

    deaf = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    made = pod("deaf", image=local_eks.image, command=deaf, terminationGracePeriodSeconds=1)
    api.post(pods_path(namespace), {**made, "metadata": {**made["metadata"], "finalizers": ["holdfast.dev/test"]}})
    wait_phase(api, namespace, "deaf", "Running")
    api.delete(pods_path(namespace, "deaf"))
    killed = ended(api, namespace, "deaf")
    api.patch(pods_path(namespace, "deaf"), {"metadata": {"finalizers": None}})

    assert printed.splitlines()[:3] == ["hooked", "told", "done"]
    assert state["exitCode"] == 0
    assert killed["exitCode"] == 137
    eventually_true(lambda: api.find(pods_path(namespace, "deaf")) is None, "its end")


def test_an_end_is_told_with_its_code_reason_and_last_words(api: Api, local_eks: LocalEks, namespace: str) -> None:
    last = ["sh", "-c", "echo 'rank 3 lost' > /dev/termination-log; exit 42"]
    api.post(pods_path(namespace), pod("fails", image=local_eks.image, command=last))
    eat = ["python3", "-c", "x = bytearray(1 << 30); print('not reached')"]
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    api.post(pods_path(namespace), pod("eats", image=local_eks.image, command=eat, container=limits))
    failed, eaten = ended(api, namespace, "fails"), ended(api, namespace, "eats")

    assert (failed["exitCode"], failed["reason"], failed["message"]) == (42, "Error", "rank 3 lost\n")
    assert (eaten["exitCode"], eaten["reason"]) == (137, "OOMKilled")
    eventually_true(lambda: api.get(pods_path(namespace, "eats"))["status"]["phase"] == "Failed", "its failure")


def test_a_container_that_fails_is_started_again_with_a_pause(api: Api, local_eks: LocalEks, namespace: str) -> None:
    command = ["sh", "-c", "echo attempt; exit 1"]
    api.post(pods_path(namespace), pod("again", image=local_eks.image, command=command, restartPolicy="OnFailure"))

    def backing_off() -> Any:
        states = api.get(pods_path(namespace, "again"))["status"].get("containerStatuses") or [{}]
        waiting = states[0].get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
        return states[0] if waiting and states[0]["restartCount"] else None

    state = eventually_true(backing_off, "a back-off")
    assert state["lastState"]["terminated"]["exitCode"] == 1
    assert log(api, namespace, "again", previous="true") == "attempt\n"


def test_a_container_is_confined_as_its_security_context_says(api: Api, local_eks: LocalEks, namespace: str) -> None:
    look = "id -u; id -g; touch /x 2>/dev/null || echo read-only; grep -c CapEff:.0000000000000000 /proc/self/status"
    context = {
        "runAsUser": 1234,
        "runAsGroup": 2345,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    made = pod("confined", image=local_eks.image, command=["sh", "-c", look], container={"securityContext": context})
    api.post(
        pods_path(namespace),
        pod("root", image=local_eks.image, container={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}),
    )

    def refused() -> bool:
        states = api.get(pods_path(namespace, "root"))["status"].get("containerStatuses") or [{}]
        return bool(states[0].get("state", {}).get("waiting", {}).get("reason") == "CreateContainerConfigError")

    assert said(api, namespace, made).splitlines() == ["1234", "2345", "read-only", "1"]
    eventually_true(refused, "the refusal of root")


def test_containers_of_a_pod_share_its_network_and_not_its_processes(
    api: Api, local_eks: LocalEks, namespace: str
) -> None:
    made = pod("two", image=local_eks.image, command=["sh", "-c", "ls -d /proc/[0-9]* | wc -l; hostname"])
    serve = ["python3", "-c", "import socket, time; s = socket.create_server(('127.0.0.1', 9000)); time.sleep(60)"]
    made["spec"]["containers"].append({"name": "beside", "image": local_eks.image, "command": serve})
    connect = (
        "import socket, time, os\n"
        "for _ in range(200):\n"
        "    try: socket.create_connection(('127.0.0.1', 9000)); break\n"
        "    except OSError: time.sleep(0.1)\n"
        "else: raise SystemExit(1)\n"
        "mine = {str(os.getpid()), 'self'}\n"
        "others = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit() and p not in mine]\n"
        "print(sum('create_server' in other for other in others), socket.gethostname())\n"
    )
    made["spec"]["containers"][0]["command"] = ["python3", "-c", connect]
    api.post(pods_path(namespace), made)

    def done() -> Any:
        states = api.get(pods_path(namespace, "two"))["status"].get("containerStatuses") or []
        return next((one["state"].get("terminated") for one in states if one["name"] == "main"), None)

    assert eventually_true(done, "the end of one of them")["exitCode"] == 0
    assert log(api, namespace, "two", container="main") == "0 two\n"
    assert api.get(pods_path(namespace, "two"))["status"]["phase"] == "Running"
