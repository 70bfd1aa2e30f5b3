"""
All mistakes of a HyperPodPyTorchJob, a line each, the same at admission and in the condition Failed.

A field is honoured, refused here, or named by ``without_effect``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast_operator.hyperpod.translation import to_holdfast_job
from holdfast_operator.jobs import log_rule_mistakes, mistakes, number, shown, unknown_fields

FIELDS = {
    "spec.elasticPolicy": {
        "faultyScaleDownTimeoutInSeconds", "gracefulShutdownTimeoutInSeconds", "maxReplicas", "minReplicas",
        "replicaDiscreteValues", "replicaIncrementStep", "scalingTimeoutInSeconds",
    },
    "spec": {"elasticPolicy", "nprocPerNode", "replicaSpecs", "runPolicy"},
    "spec.replicaSpecs[0]": {"maxReplicas", "name", "replicas", "spares", "template"},
    "spec.runPolicy": {
        "activeDeadlineSeconds", "cleanPodPolicy", "faultDeadlineSeconds", "jobMaxRetryCount",
        "logMonitoringConfiguration", "restartPolicy", "startupDeadlineSeconds", "suspend", "ttlSecondsAfterFinished",
        "workloadMode",
    },
    "spec.runPolicy.restartPolicy": {
        "evalPeriodSeconds", "maxFullJobRestarts", "maxNumRepeatOffendersToAvoid", "numRestartBeforeFullJobRestart",
        "scaleUpSnoozeTimeInSeconds",
    },
}  # fmt: skip
CLEAN_POD_POLICIES = ("All", "OnlyComplete", "None")
PROCESSES = re.compile(r"auto|cpu|gpu|[1-9][0-9]*")
_PATHS = {
    "spec.template": "spec.replicaSpecs[0].template",
    "spec.nodes.size": "spec.replicaSpecs[0].replicas",
    "spec.nodes.spares": "spec.replicaSpecs[0].spares",
    "spec.nodes.min": "spec.elasticPolicy.minReplicas",
    "spec.nodes.max": "spec.elasticPolicy.maxReplicas",
    "spec.nodes.step": "spec.elasticPolicy.replicaIncrementStep",
    "spec.nodes.sizes": "spec.elasticPolicy.replicaDiscreteValues",
    "spec.nodes": "spec.elasticPolicy",
    "spec.logRules": "spec.runPolicy.logMonitoringConfiguration",
    "spec.suspend": "spec.runPolicy.suspend",
    "spec.recovery.launcherRestarts": "spec.runPolicy.jobMaxRetryCount",
    "spec.recovery.jobRestarts": "spec.runPolicy.restartPolicy.maxFullJobRestarts",
    "spec.recovery.restartAllAfter": "spec.runPolicy.restartPolicy.numRestartBeforeFullJobRestart",
    "spec.recovery.periodSeconds": "spec.runPolicy.restartPolicy.evalPeriodSeconds",
    "spec.deadlines.startSeconds": "spec.runPolicy.startupDeadlineSeconds",
    "spec.deadlines.activeSeconds": "spec.runPolicy.activeDeadlineSeconds",
    "spec.deadlines.faultSeconds": "spec.runPolicy.faultDeadlineSeconds",
    "spec.processesPerNode": "spec.nprocPerNode",
}
"""Fields of the HoldfastJob, and where they come from."""
Object = Mapping[str, Any]


def hyperpod_mistakes(manifest: Object) -> list[str]:
    """Return all mistakes of a job; none for a valid one."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return [f"spec: got {shown(spec)}; allowed: an object with replicaSpecs"]
    found = list(_spec(spec))
    if not _is_readable(spec):
        return found
    known = {line.partition(": ")[0] for line in found}
    others = map(_named, mistakes(to_holdfast_job(manifest)))
    return [*found, *(line for line in others if line.partition(": ")[0] not in known)]


def _is_readable(spec: Object) -> bool:
    """Return True if all objects are objects, so that the HoldfastJob can be judged as well."""
    replicas, policy = spec.get("replicaSpecs"), spec.get("runPolicy") or {}
    elastic = spec.get("elasticPolicy") or {}
    if not isinstance(replicas, list) or len(replicas) != 1 or not isinstance(replicas[0], dict):
        return False
    if not isinstance(policy, dict) or not isinstance(policy.get("restartPolicy") or {}, dict):
        return False
    return isinstance(elastic, dict) and not list(_containers(replicas[0]))


def _spec(spec: Object) -> Iterator[str]:
    yield from unknown_fields(spec, FIELDS["spec"], "spec")
    processes = spec.get("nprocPerNode", "auto")
    if not isinstance(processes, str) or not PROCESSES.fullmatch(processes):
        yield f"spec.nprocPerNode: got {shown(processes)}; allowed: 'auto', 'cpu', 'gpu', or a number as text: '8'"
    replicas = spec.get("replicaSpecs")
    if not isinstance(replicas, list) or len(replicas) != 1 or not isinstance(replicas[0], dict):
        count = len(replicas) if isinstance(replicas, list) else shown(replicas)
        yield f"spec.replicaSpecs: got {count}; allowed: a list of one object with name and template"
    else:
        yield from _replica(replicas[0])
        yield from _elastic(spec.get("elasticPolicy"), replicas[0].get("maxReplicas"), replicas[0].get("replicas"))
    policy = spec.get("runPolicy") or {}
    if not isinstance(policy, dict):
        yield f"spec.runPolicy: got {shown(policy)}; allowed: an object"
        return
    yield from _policy(policy)


def _replica(replica: Object) -> Iterator[str]:
    path = "spec.replicaSpecs[0]"
    yield from unknown_fields(replica, FIELDS[path], path)
    if not isinstance(replica.get("name"), str) or not replica["name"]:
        yield f"{path}.name: got {shown(replica.get('name'))}; allowed: a name, which is part of the pods' names"
    yield from _counts(replica, path, replicas=0, spares=0, maxReplicas=1)
    yield from _containers(replica)


def _containers(replica: Object) -> Iterator[str]:
    template = replica.get("template")
    containers = ((template.get("spec") or {}) if isinstance(template, dict) else {}).get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(one, dict) for one in containers):
        path = "spec.replicaSpecs[0].template.spec.containers"
        yield f"{path}: got {shown(containers)}; allowed: containers, the first one trains"


def _elastic(policy: object, most: object, replicas: object) -> Iterator[str]:
    path, most_path = "spec.elasticPolicy", "spec.replicaSpecs[0].maxReplicas"
    if not policy:
        if most is not None and most != (replicas or 1):
            yield f"{most_path}: got {shown(most)}; allowed: the value of replicas, or also elasticPolicy.maxReplicas"
        return
    if not isinstance(policy, dict):
        yield f"{path}: got {shown(policy)}; allowed: an object with minReplicas and maxReplicas"
        return
    yield from unknown_fields(policy, FIELDS[path], path)
    yield from _counts(
        policy, path, minReplicas=1, maxReplicas=1, replicaIncrementStep=1, scalingTimeoutInSeconds=0,
        gracefulShutdownTimeoutInSeconds=1, faultyScaleDownTimeoutInSeconds=0,
    )  # fmt: skip
    highest, values = policy.get("maxReplicas"), policy.get("replicaDiscreteValues")
    if highest is None:
        yield f"{path}.maxReplicas: got nothing; allowed: a whole number from minReplicas"
    elif most is not None and most != highest:
        yield f"{most_path}: got {shown(most)}; allowed: {shown(highest)}, as elasticPolicy.maxReplicas"
    if values is not None and policy.get("replicaIncrementStep") is not None:
        yield f"{path}: got replicaIncrementStep and replicaDiscreteValues; allowed: one of them"
    numbers = values if isinstance(values, list) and all(isinstance(one, int) for one in values) else []
    bounds = policy.get("minReplicas") or 1, highest if isinstance(highest, int) else max(numbers, default=1)
    if isinstance(bounds[0], int) and any(not bounds[0] <= one <= bounds[1] for one in numbers):
        allowed = f"whole numbers from {bounds[0]} to {bounds[1]}"
        yield f"{path}.replicaDiscreteValues: got {shown(values)}; allowed: {allowed}"


def _policy(policy: Object) -> Iterator[str]:
    path = "spec.runPolicy"
    yield from unknown_fields(policy, FIELDS[path], path)
    yield from _counts(
        policy, path, activeDeadlineSeconds=1, startupDeadlineSeconds=1, faultDeadlineSeconds=1, jobMaxRetryCount=0,
        ttlSecondsAfterFinished=-1,
    )  # fmt: skip
    if policy.get("cleanPodPolicy", "All") not in CLEAN_POD_POLICIES:
        allowed = ", ".join(CLEAN_POD_POLICIES)
        yield f"{path}.cleanPodPolicy: got {shown(policy['cleanPodPolicy'])}; allowed: {allowed}"
    if not isinstance(policy.get("suspend") or False, bool):
        yield f"{path}.suspend: got {shown(policy['suspend'])}; allowed: true, false"
    if policy.get("workloadMode"):
        yield f"{path}.workloadMode: it belongs to AWS's resizing of jobs; leave it out"
    restarts = policy.get("restartPolicy")
    if isinstance(restarts, dict):
        yield from unknown_fields(restarts, FIELDS[f"{path}.restartPolicy"], f"{path}.restartPolicy")
        yield from _counts(restarts, f"{path}.restartPolicy", **dict.fromkeys(FIELDS[f"{path}.restartPolicy"], 0))
        if restarts.get("evalPeriodSeconds") is None:
            yield f"{path}.restartPolicy.evalPeriodSeconds: got nothing; allowed: a whole number of seconds"
    elif restarts is not None:
        yield f"{path}.restartPolicy: got {shown(restarts)}; allowed: an object with evalPeriodSeconds"
    rules = policy.get("logMonitoringConfiguration")
    yield from log_rule_mistakes([] if rules is None else rules, f"{path}.logMonitoringConfiguration")


def _named(line: str) -> str:
    path, separator, rest = line.partition(": ")
    for ours, theirs in _PATHS.items():
        if path == ours or path.startswith((f"{ours}.", f"{ours}[")):
            return f"{theirs}{path.removeprefix(ours)}{separator}{rest}"
    return f"metadata.name and spec.replicaSpecs[0].name{separator}{rest}" if path == "metadata.name" else line


def _counts(found: Object, path: str, **least: int) -> Iterator[str]:
    for name, lowest in sorted(least.items()):
        if found.get(name) is not None:
            yield from number(found, name, path, least=lowest)
