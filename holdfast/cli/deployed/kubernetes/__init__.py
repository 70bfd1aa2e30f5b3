"""A cluster under Kubernetes: login and jobs. Objects are parsed by ``cli.kubernetes``."""

from holdfast.cli.deployed.kubernetes.jobs import (
    cancel_workloads,
    check_kubernetes_job,
    known_workloads,
    kubernetes_outcome,
    kubernetes_output,
    operated_sizes,
    workload,
    workload_rows,
)
from holdfast.cli.deployed.kubernetes.login import (
    credential,
    eks_cluster,
    kubeconfig_path,
    sign_in,
    write_kubeconfig,
)

__all__ = [
    "cancel_workloads",
    "check_kubernetes_job",
    "credential",
    "eks_cluster",
    "known_workloads",
    "kubeconfig_path",
    "kubernetes_outcome",
    "kubernetes_output",
    "operated_sizes",
    "sign_in",
    "workload",
    "workload_rows",
    "write_kubeconfig",
]
