"""Valid HyperPodPyTorchJobs, which tests of the operator change."""

import copy
from typing import Any

CONTAINER = {
    "name": "pytorch",
    "image": "train:1",
    "command": ["hyperpodrun", "--tee=3", "--nproc_per_node=8", "--nnodes=2", "/workspace/ddp.py"],
    "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "179"}},
}


def hyperpod_job(
    *, policy: dict[str, Any] | None = None, replica: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """Two nodes, as the API server has them; ``policy`` and ``replica`` are merged into runPolicy and the replica."""
    base = {"name": "pods", "replicas": 2, "template": {"spec": {"containers": [copy.deepcopy(CONTAINER)]}}}
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {
            "name": "llama",
            "namespace": "team",
            "uid": "0123456789",
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-29T10:00:00Z",
        },
        "spec": {
            "nprocPerNode": "8",
            "replicaSpecs": [{**base, **(replica or {})}],
            **({"runPolicy": policy} if policy is not None else {}),
            **spec,
        },
    }
