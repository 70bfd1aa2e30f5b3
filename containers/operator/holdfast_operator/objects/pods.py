"""
Pod of a launcher: the user's template, with name, place and variables of its index.

holdfast-run reads its options from variables named as torchrun's (PET_NNODES), so the container's arguments are the
program and its own. Launchers find each other by their host names below a headless Service.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast_common import JOB_API, JOB_GROUP, JOB_INDEX_LABEL, JOB_KIND, JOB_LABEL, NODE_HEALTH_LABEL
from holdfast_operator.jobs import Job
from holdfast_operator.objects.queue import queue_annotations, queue_labels

SHAPE_ANNOTATION = f"{JOB_GROUP}/shape"
GRACE_S = 60
"""Time for a hand-over, where the template names none: Kubernetes' own 30 s may end it."""
METRICS_PORT = 29390
UNHEALTHY = ("Unschedulable", "UnschedulablePendingReboot", "UnschedulablePendingReplacement")
"""HyperPod's health labels of nodes that take no pods (developer guide, "Health-related Kubernetes labels")."""


def selector_of(name: str) -> str:
    return f"{JOB_LABEL}={name}"


def pod_of(job: Job, index: int, *, excluded: Sequence[str] = ()) -> dict[str, Any]:
    """Return a pod's manifest; ``excluded``: nodes that it must not run on."""
    template = copy.deepcopy(dict(job.template))
    metadata, spec = template.get("metadata") or {}, template["spec"]
    name = f"{job.name}-{index}"
    spec |= {"hostname": name, "subdomain": job.name, "restartPolicy": "Never"}
    spec.setdefault("terminationGracePeriodSeconds", GRACE_S)
    if spec.get("hostNetwork") and spec.get("dnsPolicy", "ClusterFirst") == "ClusterFirst":
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"  # the node's name servers do not know the other pods
    spec["affinity"] = _placed(spec.get("affinity") or {}, excluded)
    first = spec["containers"][0]
    first.setdefault("name", "train")
    # The last lines tell a restart from a stop; without a file of the program the kubelet takes them from the log.
    first.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    path = first.setdefault("terminationMessagePath", "/dev/termination-log")
    first["env"] = _variables(job, index, first.get("env") or (), metrics_file=path)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **queue_labels(job, index),
                JOB_LABEL: job.name,
                JOB_INDEX_LABEL: str(index),
            },
            "annotations": {
                **(metadata.get("annotations") or {}),
                **queue_annotations(job, index),
                SHAPE_ANNOTATION: job.shape,
            },
            "ownerReferences": [owner(job)],
        },
        "spec": spec,
    }


def owner(job: Job) -> dict[str, Any]:
    return {
        "apiVersion": JOB_API,
        "kind": JOB_KIND,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _variables(job: Job, index: int, given: Sequence[Mapping[str, Any]], *, metrics_file: str) -> list[dict[str, Any]]:
    """Return ours first, so that the user's may refer to them; the user's replace those that are not reserved."""
    texts = {
        "JOB_COMPLETION_INDEX": str(index),
        "PET_NNODES": str(job.nodes.launchers),
        "PET_SPARE_NODES": str(job.nodes.spares),
        "PET_NPROC_PER_NODE": str(job.processes),
        "PET_METRICS_FILE": metrics_file,
        "PET_RDZV_ID": job.name,
        "PET_ON_SIGTERM": "leave",
        "NNODES": str(job.nodes.size),
        "NPROC_PER_NODE": str(job.processes),
        "HOLDFAST_JOB": job.name if job.namespace == "default" else f"{job.namespace}/{job.name}",
        "HOLDFAST_SUBMISSION": f"{job.name}-{job.uid[:8]}",
    }
    if job.template["spec"].get("hostNetwork"):  # where two pods would share a port, and have the node's host name
        texts["HOSTNAME"] = f"{job.name}-{index}.{job.name}.{job.namespace}.svc"
    else:
        texts["PET_METRICS_PORT"] = str(METRICS_PORT)
    if job.nodes.sizes:
        texts["PET_SIZES"] = ",".join(map(str, job.nodes.sizes))
    own: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in texts.items()]
    own.append({"name": "HOLDFAST_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    token = {"name": f"{job.name}-run", "key": "token"}
    own.append({"name": "HOLDFAST_TOKEN", "valueFrom": {"secretKeyRef": token}})
    names = {one.get("name") for one in given}
    return [*(one for one in own if one["name"] not in names), *(dict(one) for one in given)]


def _placed(affinity: Mapping[str, Any], excluded: Sequence[str]) -> dict[str, Any]:
    """Add to each term of the user's, which are alternatives, that the node is healthy and not excluded."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    ours = {"key": NODE_HEALTH_LABEL, "operator": "NotIn", "values": list(UNHEALTHY)}
    # By name, since the label of the host name may be another one; a requirement of a field has one value.
    names = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in sorted(excluded)]
    node = dict(affinity.get("nodeAffinity") or {})
    terms = (node.get(key) or {}).get("nodeSelectorTerms") or [{}]
    node[key] = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [*(term.get("matchExpressions") or ()), ours],
                **({"matchFields": fields} if (fields := [*(term.get("matchFields") or ()), *names]) else {}),
            }
            for term in terms
        ]
    }
    return {**affinity, "nodeAffinity": node}
