"""The HoldfastJob of a HyperPodPyTorchJob: one job below it, whose pods are called as AWS's are."""

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast_common import JOB_API, JOB_KIND
from holdfast_operator.hyperpod.kind import API, KIND, NAME_LABEL
from holdfast_operator.jobs import PRIORITY_LABEL, QUEUE_LABEL, RUNNING, Status

ACCELERATORS = ("nvidia.com/gpu", "aws.amazon.com/neurondevice", "aws.amazon.com/neuroncore")
MIG = "nvidia.com/mig-"
_DEADLINES = {
    "startupDeadlineSeconds": "startSeconds",
    "activeDeadlineSeconds": "activeSeconds",
    "faultDeadlineSeconds": "faultSeconds",
}


def child_name(manifest: Mapping[str, Any]) -> str:
    """Return JOB-REPLICA, so that pods are JOB-REPLICA-INDEX."""
    return f"{manifest['metadata'].get('name', '')}-{manifest['spec']['replicaSpecs'][0]['name']}"


def to_holdfast_job(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the HoldfastJob of a valid manifest, owned by it."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    replica, policy = spec["replicaSpecs"][0], spec.get("runPolicy") or {}
    elastic = spec.get("elasticPolicy") or {}
    template = _template(replica["template"], name=metadata.get("name", ""))
    if elastic.get("gracefulShutdownTimeoutInSeconds") is not None:
        template["spec"]["terminationGracePeriodSeconds"] = elastic["gracefulShutdownTimeoutInSeconds"]
    return {
        "apiVersion": JOB_API,
        "kind": JOB_KIND,
        "metadata": {
            "name": child_name(manifest),
            "namespace": metadata.get("namespace", ""),
            "labels": {NAME_LABEL: metadata.get("name", ""), **_queue(metadata.get("labels") or {})},
            "ownerReferences": [
                {
                    "apiVersion": API,
                    "kind": KIND,
                    "name": metadata.get("name", ""),
                    "uid": metadata.get("uid", ""),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodes": _nodes(replica, elastic),
            "processesPerNode": _processes(str(spec.get("nprocPerNode", "auto")), template["spec"]["containers"][0]),
            "template": template,
            "suspend": bool(policy.get("suspend")),
            "recovery": _recovery(policy),
            "logRules": policy.get("logMonitoringConfiguration") or [],
            "deadlines": _given(policy, **_DEADLINES),
        },
    }


def grown_size(manifest: Mapping[str, Any], size: int, child: Status, *, now_s: float) -> int:
    """
    Return the nodes of an elastic job: once it has run for its scaling timeout, all that it may have.

    As AWS's operator without Kueue: pods that find no node wait, and the job takes them when they run. A size that is
    not ``replicas`` any more stays: the job has grown, or was scaled.
    """
    spec = manifest["spec"]
    elastic, running = spec.get("elasticPolicy") or {}, child.condition(RUNNING)
    if (
        not elastic
        or running is None
        or not running.is_true
        or size != _nodes(spec["replicaSpecs"][0], elastic)["size"]
    ):
        return size
    restarts = (spec.get("runPolicy") or {}).get("restartPolicy") or {}
    waits_s = [elastic.get("scalingTimeoutInSeconds") or 0, restarts.get("scaleUpSnoozeTimeInSeconds") or 0]
    most = elastic.get("maxReplicas") or 0
    return max(elastic.get("replicaDiscreteValues") or [most]) if now_s >= running.since_s + max(waits_s) else size


def without_effect(manifest: Mapping[str, Any]) -> list[str]:
    """Return the fields of a valid manifest that change nothing here."""
    return list(_without_effect(manifest["spec"]))


def _without_effect(spec: Mapping[str, Any]) -> Iterator[str]:
    elastic, restarts = spec.get("elasticPolicy") or {}, (spec.get("runPolicy") or {}).get("restartPolicy") or {}
    if elastic.get("faultyScaleDownTimeoutInSeconds"):
        yield "elasticPolicy.faultyScaleDownTimeoutInSeconds"
    if restarts.get("scaleUpSnoozeTimeInSeconds") and not elastic:
        yield "runPolicy.restartPolicy.scaleUpSnoozeTimeInSeconds"


def _nodes(replica: Mapping[str, Any], elastic: Mapping[str, Any]) -> dict[str, Any]:
    found = {"size": replica.get("replicas") or elastic.get("minReplicas") or 1, "spares": replica.get("spares") or 0}
    if elastic.get("replicaDiscreteValues") is not None:
        return {**found, "sizes": elastic["replicaDiscreteValues"]}
    return {**found, **_given(elastic, minReplicas="min", maxReplicas="max", replicaIncrementStep="step")}


def _queue(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: labels[name] for name in (QUEUE_LABEL, PRIORITY_LABEL) if name in labels}


def _template(found: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    template = copy.deepcopy(dict(found))
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: name}
    template["metadata"] = metadata
    if isinstance(template.get("spec"), dict):
        template["spec"].pop("restartPolicy", None)  # AWS's operator restarts pods itself too
    return template


def _processes(text: str, container: Mapping[str, Any]) -> int:
    """
    Return the ranks of a node.

    ``auto`` is the number of accelerators or, without one, of CPUs, as torchrun's; here by the container's limits.
    """
    if text.isdecimal():
        return int(text)
    resources = container.get("resources") or {}
    limits = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    found = [_count(limits[name]) for name in limits if name in ACCELERATORS or name.startswith(MIG)]
    if text != "cpu" and any(found):
        return max(found)
    return max(1, _count(limits.get("cpu", 1)))


def _count(quantity: object) -> int:
    """Return a quantity of Kubernetes as a whole number; 0 for one that is none."""
    text = str(quantity)
    try:
        return math.ceil(float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1))
    except ValueError:
        return 0


def _recovery(policy: Mapping[str, Any]) -> dict[str, int]:
    restarts = policy.get("restartPolicy") or {}
    found = _given(policy, jobMaxRetryCount="launcherRestarts") | _given(
        restarts,
        maxFullJobRestarts="jobRestarts",
        numRestartBeforeFullJobRestart="restartAllAfter",
        evalPeriodSeconds="periodSeconds",
    )
    if restarts.get("maxNumRepeatOffendersToAvoid") == 0:
        found["nodeFailures"] = 0
    return found


def _given(found: Mapping[str, Any], **names: str) -> dict[str, int]:
    return {ours: found[theirs] for theirs, ours in names.items() if found.get(theirs) is not None}
