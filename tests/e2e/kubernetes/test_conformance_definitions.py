"""What operators take for granted of kinds of their own: schemas, subresources, columns, and webhooks before them.

Each behaviour is a row of docs/reference/kubernetes-api.md, with its source; everything is asked by plain HTTPS.
"""

import base64
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_http import Api, Refused
from kubernetes_things import pod, pods_path, wait_ready
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes]

GROUP = "holdfast.test"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"

SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 9},
                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}


@pytest.fixture(scope="module")
def kind(api: Api) -> Iterator[str]:
    """A kind with a schema, a status, a scale and columns; what it is called in paths."""
    plural = f"things{secrets.token_hex(2)}"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.ready",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    names = {"plural": plural, "singular": plural[:-1], "kind": plural.capitalize(), "shortNames": [f"t{plural[-4:]}"]}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    path = f"{DEFINITIONS}/{plural}.{GROUP}"
    api.post(DEFINITIONS, {"metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec})
    eventually_true(lambda: api.find(f"/apis/{GROUP}/v1/namespaces/default/{plural}"), "the kind")
    yield plural
    api.delete(path)
    eventually_true(lambda: api.find(path) is None, "the kind's end")


def things(kind: str, namespace: str, name: str = "") -> str:
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


def thing(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind.capitalize(), "metadata": {"name": name}, "spec": spec}


def test_a_kind_is_found_by_discovery(api: Api, kind: str) -> None:
    listed = {one["name"]: one for one in api.get(f"/apis/{GROUP}/v1")["resources"]}

    assert {kind, f"{kind}/status", f"{kind}/scale"} <= listed.keys()
    assert listed[kind]["shortNames"] == [f"t{kind[-4:]}"]
    assert GROUP in [group["name"] for group in api.get("/apis")["groups"]]


def test_a_schema_refuses_fills_in_and_prunes(api: Api, kind: str, namespace: str) -> None:
    made = api.post(things(kind, namespace), thing(kind, "good", size=1, unknown="x", free={"any": [1]}))
    refused = []
    for spec in ({"size": 10}, {"size": "1"}, {"size": 1, "mode": "other"}, {}):
        with pytest.raises(Refused) as error:
            api.post(things(kind, namespace), thing(kind, "bad", **spec))
        refused.append((error.value.code, error.value.reason, error.value.status["details"]["causes"][0]["field"]))

    assert made["spec"] == {"size": 1, "mode": "fast", "free": {"any": [1]}}
    assert {(code, reason) for code, reason, _ in refused} == {(422, "Invalid")}
    assert [field for _, _, field in refused] == ["spec.size", "spec.size", "spec.mode", "spec.size"]


def test_status_and_specification_are_written_apart(api: Api, kind: str, namespace: str) -> None:
    path = things(kind, namespace, "apart")
    first = api.post(things(kind, namespace), {**thing(kind, "apart", size=1), "status": {"ready": 5}})
    told = api.patch(f"{path}/status", {"spec": {"size": 2}, "status": {"ready": 1}})
    changed = api.patch(path, {"spec": {"size": 3}, "status": {"ready": 9}})

    assert "status" not in first
    assert (told["spec"]["size"], told["status"], told["metadata"]["generation"]) == (1, {"ready": 1}, 1)
    assert (changed["spec"]["size"], changed["status"]) == (3, {"ready": 1})
    assert changed["metadata"]["generation"] == 2  # counts what was asked for, not what was told


def test_a_thing_is_scaled_without_knowing_it(api: Api, kind: str, namespace: str) -> None:
    path = things(kind, namespace, "scaled")
    api.post(things(kind, namespace), thing(kind, "scaled", size=1))
    api.patch(f"{path}/status", {"status": {"ready": 1, "selector": "app=scaled"}})
    scale = api.get(f"{path}/scale")
    api.patch(f"{path}/scale", {"spec": {"replicas": 4}})

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["status"] == {"replicas": 1, "selector": "app=scaled"}
    assert api.get(path)["spec"]["size"] == 4


def test_columns_are_printed_by_the_server(api: Api, kind: str, namespace: str) -> None:
    api.post(things(kind, namespace), thing(kind, "shown", size=7))
    table = api.table(things(kind, namespace))

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["shown", 7]]


def test_things_of_a_kind_are_watched(api: Api, kind: str, namespace: str) -> None:
    since = api.get(things(kind, namespace))["metadata"]["resourceVersion"]
    api.post(things(kind, namespace), thing(kind, "seen", size=1))
    first = next(iter(api.watch(things(kind, namespace), within_s=10, resourceVersion=since)))

    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "seen")


SERVER = """
import base64, http.server, json, ssl
class Review(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = asked["request"]
        answer = {"uid": request["uid"], "allowed": True}
        if self.path.startswith("/refuse"):
            if request["object"].get("data", {}).get("a") == "bad":
                answer = {**answer, "allowed": False, "status": {"code": 403, "message": "a is bad"}}
        else:
            patch = [{"op": "add", "path": "/data/added", "value": request["operation"]}]
            answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        body = json.dumps({**asked, "response": answer, "request": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 8443), Review)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/keys/tls.crt", "/keys/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture
def reviewer(api: Api, local_eks: LocalEks, namespace: str, tmp_path: Path) -> dict[str, Any]:
    """A webhook's server in a pod behind a service, as charts bring it; what a webhook says of how to call it."""
    name = f"reviewer.{namespace}.svc"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", "tls.key", "-out", "tls.crt", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name}"),
        ],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    keys = {file.name: base64.b64encode(file.read_bytes()).decode() for file in tmp_path.glob("tls.*")}
    api.post(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "keys"}, "data": keys})
    volume = {"volumes": [{"name": "keys", "secret": {"secretName": "keys"}}]}
    container = {
        "volumeMounts": [{"name": "keys", "mountPath": "/keys"}],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1},
    }
    made = pod("reviewer", image=local_eks.image, command=["python3", "-c", SERVER], container=container, **volume)
    api.post(pods_path(namespace), made)
    ports = [{"port": 443, "targetPort": 8443}]
    api.post(
        f"/api/v1/namespaces/{namespace}/services",
        {"metadata": {"name": "reviewer"}, "spec": {"selector": {"app": "reviewer"}, "ports": ports}},
    )
    wait_ready(api, namespace, "reviewer")
    return {"caBundle": keys["tls.crt"], "service": {"namespace": namespace, "name": "reviewer"}}


def test_webhooks_change_and_refuse_what_is_written(api: Api, namespace: str, reviewer: dict[str, Any]) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"reviewed": namespace}}})
    common = {
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"reviewed": namespace}},
    }
    made = {"mutatingwebhookconfigurations": "change", "validatingwebhookconfigurations": "refuse"}
    try:
        for resource, verb in made.items():
            client = {**reviewer, "service": {**reviewer["service"], "path": f"/{verb}"}}
            hook = {"name": f"{verb}.{GROUP}", "clientConfig": client, **common}
            api.post(f"{WEBHOOKS}/{resource}", {"metadata": {"name": f"{verb}-{namespace}"}, "webhooks": [hook]})

        def changed() -> bool:
            body = {"metadata": {"generateName": "seen-"}, "data": {"a": "good"}}
            return bool(api.post(maps, body)["data"].get("added") == "CREATE")

        eventually_true(changed, "the webhook")
        with pytest.raises(Refused) as refused:
            api.post(maps, {"metadata": {"name": "bad"}, "data": {"a": "bad"}})
    finally:
        for resource, verb in made.items():
            api.delete(f"{WEBHOOKS}/{resource}/{verb}-{namespace}")

    assert (refused.value.code, "denied the request: a is bad" in str(refused.value)) == (403, True)


def test_a_webhook_that_cannot_be_reached_refuses_or_lets_through_as_it_says(api: Api, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"reviewed": namespace}}})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {
        "name": f"gone.{GROUP}",
        "clientConfig": {"service": {"namespace": namespace, "name": "nobody"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        "namespaceSelector": {"matchLabels": {"reviewed": namespace}},
    }
    path = f"{WEBHOOKS}/validatingwebhookconfigurations"
    outcome = {}
    for policy in ("Fail", "Ignore"):
        api.post(path, {"metadata": {"name": f"gone-{namespace}"}, "webhooks": [{**hook, "failurePolicy": policy}]})

        def refused() -> bool:
            try:
                api.post(maps, {"metadata": {"generateName": "probe-"}})
            except Refused as error:
                return error.code == 500
            return False

        try:
            outcome[policy] = eventually_true(refused, "the webhook") if policy == "Fail" else refused()
        finally:
            api.delete(f"{path}/gone-{namespace}")

    assert outcome == {"Fail": True, "Ignore": False}
