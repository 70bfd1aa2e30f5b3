"""Service and Secret of a job."""

import hashlib
import hmac
from typing import Any

from holdfast_common import JOB_LABEL
from holdfast_operator.jobs import Job
from holdfast_operator.objects.pods import owner


def service_of(job: Job) -> dict[str, Any]:
    """Return the headless Service that gives pods their names, also before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, job.name),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JOB_LABEL: job.name}},
    }


def secret_of(job: Job, *, key: bytes) -> dict[str, Any]:
    """
    Return the Secret with the token of the job's launchers.

    The token follows from the operator's key and the job's UID: a Secret that was deleted by hand is created again with
    the token that running launchers have.
    """
    token = hmac.new(key, job.uid.encode(), hashlib.sha256).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job, f"{job.name}-run"),
        "type": "Opaque",
        "stringData": {"token": token},
    }


def _metadata(job: Job, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": {JOB_LABEL: job.name},
        "ownerReferences": [owner(job)],
    }
