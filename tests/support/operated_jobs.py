"""Jobs, pods and nodes for tests of the operator: valid unless a test says otherwise."""

from typing import Any

from holdfast_operator.decisions import NodeFacts, PodFacts
from holdfast_operator.jobs import Job, read_job

POD_SPEC = {"containers": [{"name": "train", "image": "train:1", "args": ["train.py"]}]}
NOW_S = 1000.0


def manifest(**spec: Any) -> dict[str, Any]:
    """A job as the API server has it: three nodes and a spare."""
    base = {"nodes": {"size": 3, "spares": 1}, "processesPerNode": 8, "template": {"spec": POD_SPEC}}
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "HoldfastJob",
        "metadata": {
            "name": "night",
            "namespace": "team",
            "uid": "0123456789",
            "generation": 1,
            "resourceVersion": "1",
        },
        "spec": {**base, **spec},
    }


def job(*, status: dict[str, Any] | None = None, **spec: Any) -> Job:
    return read_job({**manifest(**spec), **({"status": status} if status else {})})


def pod(of: Job, index: int, **changes: Any) -> PodFacts:
    """A pod that has run for a while, each on a node of its own."""
    base: dict[str, Any] = {
        "index": index,
        "uid": f"pod-{index}",
        "phase": "Running",
        "shape": of.shape,
        "node": f"n{index}",
        "created_s": NOW_S - 100,
        "started_s": NOW_S - 90,
    }
    return PodFacts(**{**base, **changes})


def ended(of: Job, index: int, code: int, message: str = "", **changes: Any) -> PodFacts:
    base = {"phase": "Succeeded" if code == 0 else "Failed", "exit_code": code, "message": message, "ended_s": NOW_S}
    return pod(of, index, **{**base, **changes})


def pods(of: Job, *changed: PodFacts, without: tuple[int, ...] = ()) -> list[PodFacts]:
    """All pods of a job, some of them changed or missing."""
    by_index = {one.index: one for one in changed}
    return [by_index.get(index, pod(of, index)) for index in range(of.nodes.pods) if index not in without]


def nodes(*names: str, **changed: NodeFacts) -> dict[str, NodeFacts]:
    """Healthy nodes n0 to n9, and changed ones."""
    return {**{name: NodeFacts() for name in names or [f"n{number}" for number in range(10)]}, **changed}
