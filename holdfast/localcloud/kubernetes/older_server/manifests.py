"""
Manifests as an older API server takes them. Pure.

Versions: kubernetes.io, "Feature Gates (removed)" for IndexedJob (on since 1.22), and "Deprecated API Migration Guide"
for CronJob (batch/v1 since 1.21; no other change), read on 2026-11-29.
"""

import copy
from typing import Any

Object = dict[str, Any]
COMPLETIONS_LABEL = "holdfast.dev/indexed-completions"
"""Label of a pod that gets a completion index, with the number of them."""
_INDEXED_SINCE, _CRON_JOBS_SINCE = 22, 21


class IndexedJobError(ValueError):
    """A Job that no version takes."""


def for_server(thing: Object, *, minor: int) -> Object:
    """Return an object for a server of version 1.``minor``. Raises: IndexedJobError."""
    spec = _job_spec(thing)
    if spec is None or minor >= _INDEXED_SINCE:
        return thing
    changed = copy.deepcopy(thing)
    if thing["kind"] == "CronJob" and minor < _CRON_JOBS_SINCE:
        changed["apiVersion"] = "batch/v1beta1"
    job = _job_spec(changed)
    if job is not None and job.pop("completionMode", None) == "Indexed":
        completions = job.get("completions")
        if not isinstance(completions, int):
            raise IndexedJobError("spec.completions is required with completionMode: Indexed")
        metadata = job.setdefault("template", {}).setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), COMPLETIONS_LABEL: str(completions)}
    return changed


def _job_spec(thing: Object) -> Object | None:
    """Return the specification of a Job, or of the Jobs of a CronJob; None for other objects."""
    if thing.get("apiVersion") != "batch/v1" and thing.get("apiVersion") != "batch/v1beta1":
        return None
    spec = thing.get("spec")
    if thing.get("kind") == "CronJob" and isinstance(spec, dict):
        template = spec.get("jobTemplate")
        spec = template.get("spec") if isinstance(template, dict) else None
    elif thing.get("kind") != "Job":
        return None
    return spec if isinstance(spec, dict) else None
