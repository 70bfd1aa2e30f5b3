"""Kubernetes for the commands: tokens, kubeconfigs, manifests, jobs, commands in pods."""

from holdfast.cli.kubernetes.controllers import Rights, is_defined, unserved
from holdfast.cli.kubernetes.execution import Finished, execute
from holdfast.cli.kubernetes.kubeconfig import exec_credential, kubeconfig
from holdfast.cli.kubernetes.manifests import (
    JobName,
    ManifestError,
    Object,
    Resource,
    beside,
    files_of,
    job_name_of,
    job_of,
    parse_job_name,
    parse_manifests,
    pod_specs,
    resources_of,
    secret_of,
)
from holdfast.cli.kubernetes.tokens import TOKEN_LASTS, token
from holdfast.cli.kubernetes.workloads import (
    COMPLETE,
    GOING_ON,
    OPERATORS,
    RUNNING,
    PodRecord,
    Workload,
    image_hint,
    pod_record,
    readiness,
    workloads,
)

__all__ = [
    "COMPLETE",
    "GOING_ON",
    "OPERATORS",
    "RUNNING",
    "TOKEN_LASTS",
    "Finished",
    "JobName",
    "ManifestError",
    "Object",
    "PodRecord",
    "Resource",
    "Rights",
    "Workload",
    "beside",
    "exec_credential",
    "execute",
    "files_of",
    "image_hint",
    "is_defined",
    "job_name_of",
    "job_of",
    "kubeconfig",
    "parse_job_name",
    "parse_manifests",
    "pod_record",
    "pod_specs",
    "readiness",
    "resources_of",
    "secret_of",
    "token",
    "unserved",
    "workloads",
]
