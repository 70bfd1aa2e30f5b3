"""
Manifests as an older API server takes them. Pure.

Versions: kubernetes.io, "Feature Gates (removed)" for IndexedJob (on since 1.22), and "Deprecated API Migration Guide"
for the kinds of ``_MOVED``, read on 2026-11-30. Server-side apply of 1.20 requires the protocol of a Service's port,
which is TCP by default (seen with v1.20.2).
"""

import copy
from typing import Any

Object = dict[str, Any]
COMPLETIONS_LABEL = "holdfast.dev/indexed-completions"
"""Label of a pod that gets a completion index, with the number of them."""
_INDEXED_SINCE, _PORTS_SINCE = 22, 21
_MOVED = {
    ("batch/v1", "CronJob"): (21, "batch/v1beta1"),
    ("policy/v1", "PodDisruptionBudget"): (21, "policy/v1beta1"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): (23, "autoscaling/v2beta2"),
}
"""Minor version from which a kind is in its group version, and the one before, with the same fields."""


class IndexedJobError(ValueError):
    """A Job that no version takes."""


def for_server(thing: Object, *, minor: int) -> Object:
    """Return an object for a server of version 1.``minor``. Raises: IndexedJobError."""
    changed = copy.deepcopy(thing)
    if minor < _PORTS_SINCE and thing["kind"] == "Service":
        for port in (changed.get("spec") or {}).get("ports") or ():
            port.setdefault("protocol", "TCP")
    since, before = _MOVED.get((thing["apiVersion"], thing["kind"]), (0, ""))
    if minor < since:
        changed["apiVersion"] = before
    job = _job_spec(changed)
    if minor < _INDEXED_SINCE and job is not None and job.pop("completionMode", None) == "Indexed":
        completions = job.get("completions")
        if not isinstance(completions, int):
            raise IndexedJobError("spec.completions is required with completionMode: Indexed")
        metadata = job.setdefault("template", {}).setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), COMPLETIONS_LABEL: str(completions)}
    return changed


def _job_spec(thing: Object) -> Object | None:
    """Return the specification of a Job, or of the Jobs of a CronJob; None for other objects."""
    if thing["apiVersion"] not in ("batch/v1", "batch/v1beta1"):
        return None
    spec = thing.get("spec")
    if thing["kind"] == "CronJob" and isinstance(spec, dict):
        template = spec.get("jobTemplate")
        spec = template.get("spec") if isinstance(template, dict) else None
    elif thing["kind"] != "Job":
        return None
    return spec if isinstance(spec, dict) else None
