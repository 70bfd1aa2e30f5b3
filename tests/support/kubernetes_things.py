"""Small Kubernetes objects that tests make, and short questions to the API server about them."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes_http import Api
from local_eks import eventually_true

STAYS = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
"""A container that runs until it is told to go, and then goes at once."""


def pod(name: str, *, image: str, command: Sequence[str] = STAYS, **spec: Any) -> dict[str, Any]:
    """A pod of one container `main`, not started again; `spec` is its other fields, `container` the container's."""
    container = {"name": "main", "image": image, "command": list(command), **spec.pop("container", {})}
    labels, annotations = spec.pop("labels", {}), spec.pop("annotations", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name, **labels}, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": [container], **spec},
    }


def template(name: str, *, image: str, command: Sequence[str] = STAYS, **spec: Any) -> dict[str, Any]:
    """A pod template labelled `app: name`, for what makes pods."""
    made = pod(name, image=image, command=command, **spec)
    return {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}


def deployment(name: str, *, image: str, replicas: int) -> dict[str, Any]:
    inner = template(name, image=image, restartPolicy="Always")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": inner},
    }


def pods_path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def wait_phase(api: Api, namespace: str, name: str, phase: str, *, within_s: float = 60) -> Any:
    """The pod, once it is in a phase; a pod that ended otherwise is shown at once."""

    def there() -> Any:
        found = api.find(pods_path(namespace, name))
        at = (found or {}).get("status", {}).get("phase")
        assert at == phase or at not in ("Succeeded", "Failed"), found["status"]
        return found if at == phase else None

    return eventually_true(there, f"pod {name} {phase}", within_s=within_s)


def wait_ready(api: Api, namespace: str, name: str) -> Any:
    """The pod, once it is ready."""

    def there() -> Any:
        found = api.find(pods_path(namespace, name))
        return found if found and condition(found, "Ready") == "True" else None

    return eventually_true(there, f"pod {name} ready")


def condition(thing: Mapping[str, Any], kind: str) -> str:
    """The status of a condition; empty where there is none."""
    listed = thing.get("status", {}).get("conditions") or []
    return next((one["status"] for one in listed if one["type"] == kind), "")


def ready_nodes(api: Api) -> list[str]:
    """Nodes that are Ready and take pods."""
    found = api.get("/api/v1/nodes")["items"]
    return [
        node["metadata"]["name"]
        for node in found
        if condition(node, "Ready") == "True" and not node["spec"].get("unschedulable")
    ]
