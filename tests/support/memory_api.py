"""An API server in memory, as far as the operator's driver needs it: objects, versions, preconditions, and bad days."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast_common import KubernetesError
from holdfast_operator.decisions import NodeFacts
from holdfast_operator.objects import node_facts

Object = dict[str, Any]


class MemoryApi:
    """Has the methods of KubernetesClient that the driver calls; paths are keys."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.calls: list[tuple[str, str]] = []
        self.logs: dict[str, list[str]] = {}
        """Lines of pods, with their times."""
        self.queries: list[dict[str, str]] = []
        """Of logs."""
        self.refusals: dict[str, KubernetesError] = {}
        """By method and start of a path: what is answered instead."""
        self._version = 0

    def client(self) -> "MemoryApi":
        return self

    def get(self, path: str, **query: str) -> Object:
        self._called("GET", path)
        return copy.deepcopy(self._there(path))

    def items(self, path: str, **query: str) -> list[Object]:
        self._called("LIST", path)
        label, _, value = query.get("labelSelector", "=").partition("=")
        found = [one for key, one in self.objects.items() if key.rpartition("/")[0] == path]
        return [
            copy.deepcopy(one) for one in found if not label or one["metadata"].get("labels", {}).get(label) == value
        ]

    def text(self, path: str, **query: str) -> str:
        """Return the lines of a pod's log as the kubelet does: the newest, and from a whole second on."""
        self._called("GET", path)
        self.queries.append(query)
        lines = self.logs.get(path.removesuffix("/log"), [])[-int(query["tailLines"]) :]
        return "".join(line for line in lines if line >= query.get("sinceTime", "").rstrip("Z"))[
            : int(query["limitBytes"])
        ]

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        self._called("POST", path)
        name = body["metadata"]["name"]
        key = f"{path}/{name}"
        if key in self.objects:
            raise KubernetesError(409, f'{path.rpartition("/")[2]} "{name}" already exists')
        self._version += 1
        made = copy.deepcopy(dict(body))
        made["metadata"] = {
            **made["metadata"],
            "uid": f"uid-{self._version}",
            "resourceVersion": str(self._version),
            "creationTimestamp": "1970-01-01T00:00:00Z",
        }
        self.objects[key] = made
        return copy.deepcopy(made)

    def patch(self, path: str, body: Mapping[str, Any], *, kind: str = "merge-patch") -> Object:
        self._called("PATCH", path)
        key = path.removesuffix("/status")
        there = self._there(key)
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, there["metadata"]["resourceVersion"]):
            raise KubernetesError(409, "the object has been modified")
        merged(there, {name: value for name, value in body.items() if name != "metadata"})
        if "finalizers" in body.get("metadata", {}):
            there["metadata"]["finalizers"] = list(body["metadata"]["finalizers"])
            if not there["metadata"]["finalizers"] and "deletionTimestamp" in there["metadata"]:
                return self.objects.pop(key)
        self.touched(key)
        return copy.deepcopy(there)

    def delete(self, path: str, *, uid: str = "", grace_s: int | None = None) -> None:
        self._called("DELETE", path)
        there = self.objects.get(path)
        if there is None:
            return
        if uid not in ("", there["metadata"]["uid"]):
            raise KubernetesError(409, "the UID in the precondition does not match")
        runs = there.get("status", {}).get("phase") == "Running"
        if ("/pods/" in path and runs and grace_s != 0) or there["metadata"].get("finalizers"):
            there["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z"
            self.touched(path)
        else:
            del self.objects[path]

    def touched(self, path: str) -> None:
        self._version += 1
        self.objects[path]["metadata"]["resourceVersion"] = str(self._version)

    @contextmanager
    def refusing(self, start: str, code: int, message: str = "refused") -> Iterator[None]:
        """Answer calls such as "POST /api/v1/..." with an error."""
        self.refusals[start] = KubernetesError(code, message)
        try:
            yield
        finally:
            del self.refusals[start]

    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] in ("POST", "PATCH", "DELETE")]

    def _there(self, path: str) -> Object:
        if path not in self.objects:
            raise KubernetesError(404, f"{path} not found")
        return self.objects[path]

    def _called(self, method: str, path: str) -> None:
        self.calls.append((method, path))
        for start, error in self.refusals.items():
            if f"{method} {path}".startswith(start):
                raise error


class MemoryCache:
    """The watches of an API server in memory; ``stale`` has what they have not reported yet."""

    def __init__(self, api: MemoryApi) -> None:
        self.api = api
        self.stale: dict[str, Object | None] = {}

    def jobs(self) -> list[Object]:
        return self._all("/holdfastjobs/")

    def job(self, key: tuple[str, str]) -> Object | None:
        namespace, name = key
        found = self._all(f"/namespaces/{namespace}/holdfastjobs/{name}")
        return next((one for one in found if one["metadata"]["name"] == name), None)

    def hyperpod_jobs(self) -> list[Object]:
        return self._all("/hyperpodpytorchjobs/")

    def pods(self) -> list[Object]:
        return self._all("/pods/")

    def pods_of(self, key: tuple[str, str]) -> list[Object]:
        pods = self._all(f"/namespaces/{key[0]}/pods/")
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get("holdfast.dev/job") == key[1]]

    def nodes(self) -> dict[str, NodeFacts]:
        return {node["metadata"]["name"]: node_facts(node) for node in self._all("/nodes/")}

    def _all(self, part: str) -> list[Object]:
        seen = {**self.api.objects, **{path: one for path, one in self.stale.items() if one is not None}}
        hidden = {path for path, one in self.stale.items() if one is None}
        return [copy.deepcopy(one) for path, one in seen.items() if part in path and path not in hidden]


def merged(there: Object, patch: Mapping[str, Any]) -> None:
    """RFC 7386."""
    for name, value in patch.items():
        if value is None:
            there.pop(name, None)
        elif isinstance(value, dict):
            merged(there.setdefault(name, {}), value)
        else:
            there[name] = copy.deepcopy(value)
