"""
Asks AWS, the local cloud and the nodes what is there, and which cluster a command speaks of. It changes nothing but
the event log and what jobs are asked for, and prints nothing.
"""

from holdfast.cli.deployed.aws import AwsError, UnreachableError
from holdfast.cli.deployed.by_hand import refuse_on_aws
from holdfast.cli.deployed.choices import Choice, LineChoice, parse_since
from holdfast.cli.deployed.cluster import (
    by_name,
    controller_hostname,
    instance_types_of,
    jobs_prefix,
    mount_paths,
    stack_outputs,
)
from holdfast.cli.deployed.events import read_events, record_event
from holdfast.cli.deployed.finished_jobs import JobRow, row, rows
from holdfast.cli.deployed.kubernetes import (
    EksCluster,
    SignedIn,
    cancel_workloads,
    check_kubernetes_job,
    credential,
    eks_cluster,
    known_workloads,
    kubeconfig_path,
    kubernetes_outcome,
    kubernetes_output,
    sign_in,
    workload,
    workload_rows,
    write_kubeconfig,
)
from holdfast.cli.deployed.logs import (
    OutputFiles,
    heading,
    job_output,
    lifecycle_stream,
    lifecycle_streams,
    stream_lines,
    written_so_far,
)
from holdfast.cli.deployed.nodes import instance, instance_status, run
from holdfast.cli.deployed.service_events import read_service_events
from holdfast.cli.deployed.sessions import Context, Session, environments, recorded
from holdfast.cli.deployed.sizes import ask_for_size
from holdfast.cli.deployed.slurm_jobs import check_job_id, expand_job_id, job_outcome, known_jobs, parse_scontrol
from holdfast.cli.deployed.status import (
    FileSystemView,
    IncidentView,
    JobView,
    NodeView,
    StatusView,
    direction,
    parse_drained,
    parse_slurm,
    read_status,
    with_training,
)
from holdfast.cli.deployed.targets import (
    CLUSTER,
    ENVIRONMENT,
    LONG_ENVIRONMENT,
    PROFILE,
    REGION,
    VARIABLE,
    check_region,
    locate,
)

__all__ = [
    "CLUSTER",
    "ENVIRONMENT",
    "LONG_ENVIRONMENT",
    "PROFILE",
    "REGION",
    "VARIABLE",
    "AwsError",
    "Choice",
    "Context",
    "EksCluster",
    "FileSystemView",
    "IncidentView",
    "JobRow",
    "JobView",
    "LineChoice",
    "NodeView",
    "OutputFiles",
    "Session",
    "SignedIn",
    "StatusView",
    "UnreachableError",
    "ask_for_size",
    "by_name",
    "cancel_workloads",
    "check_job_id",
    "check_kubernetes_job",
    "check_region",
    "controller_hostname",
    "credential",
    "direction",
    "eks_cluster",
    "environments",
    "expand_job_id",
    "heading",
    "instance",
    "instance_status",
    "instance_types_of",
    "job_outcome",
    "job_output",
    "jobs_prefix",
    "known_jobs",
    "known_workloads",
    "kubeconfig_path",
    "kubernetes_outcome",
    "kubernetes_output",
    "lifecycle_stream",
    "lifecycle_streams",
    "locate",
    "mount_paths",
    "parse_drained",
    "parse_scontrol",
    "parse_since",
    "parse_slurm",
    "read_events",
    "read_service_events",
    "read_status",
    "record_event",
    "recorded",
    "refuse_on_aws",
    "row",
    "rows",
    "run",
    "sign_in",
    "stack_outputs",
    "stream_lines",
    "with_training",
    "workload",
    "workload_rows",
    "write_kubeconfig",
    "written_so_far",
]
