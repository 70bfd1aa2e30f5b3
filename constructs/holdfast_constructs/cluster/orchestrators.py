"""Orchestrators: Slurm, configured through the API, or an EKS control plane."""

from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_secretsmanager as secretsmanager

from holdfast_constructs.eks import IHyperPodEks

ConfigStrategy = Literal["Overwrite", "Managed", "Merge"]


@dataclass(frozen=True, kw_only=True)
class AccountingDatabase:
    """
    External MySQL database of slurmdbd.

    It needs continuous provisioning and an image from after August 2026, and a cluster that has one cannot go back to
    the database on its controller (SageMaker developer guide, "Using an external accounting database").
    """

    endpoint: str
    """Host name, reachable from the cluster's network."""
    secret: secretsmanager.ISecret
    """Has ``username`` and ``password`` of a user who may create the schema. The nodes' role is allowed to read it."""
    port: int = 3306
    """Default: 3306."""
    name: str | None = None
    """Of the schema. Default: ``slurm_acct_db_`` and the cluster's id."""
    tls: bool = False
    """True if the server refuses connections without TLS; slurmdbd then uses it, where the lifecycle scripts
    start it. Default: False, its client library decides."""


@dataclass(frozen=True, kw_only=True)
class SlurmOrchestrator:
    """Slurm: groups have node types, and Compute groups a partition."""

    config_strategy: ConfigStrategy = "Managed"
    """What an update does with manual edits of slurm.conf: Overwrite discards them, Managed fails when there are some,
    Merge keeps them. Continuous provisioning takes none, so that none is sent. Default: "Managed"."""
    accounting_database: AccountingDatabase | None = None
    """Default: a database on the controller, which is lost with it."""


@dataclass(frozen=True, kw_only=True)
class EksOrchestrator:
    """Kubernetes: groups may have labels and taints."""

    control_plane: IHyperPodEks
    """Changing it replaces the HyperPod cluster."""
