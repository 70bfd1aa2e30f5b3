"""``slurm`` or ``eks`` section of an environment file."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.config import Accounting, TaskGovernance, Team
from holdfast.importing.account import ObservedCluster
from holdfast.importing.draft import Draft, KeptParts
from holdfast.importing.sections.settings import of_model, read_back

TRAINING_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
OBSERVABILITY_EXTENSION = "sagemaker-observability"
OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
KNOWN_ADDONS = frozenset(
    {
        TRAINING_OPERATOR,
        OBSERVABILITY,
        TASK_GOVERNANCE,
        "amazon-cloudwatch-observability",
        "aws-fsx-csi-driver",
        "cert-manager",
        "coredns",
        "eks-pod-identity-agent",
        "kube-proxy",
        "metrics-server",
        "vpc-cni",
    }
)


def slurm(
    request: Mapping[str, Any], stack: frozenset[str], *, extensions: Sequence[str] = (), imported: Draft
) -> dict[str, Any]:
    """``slurm`` section under its name; empty if all is default."""
    config = (request.get("Orchestrator") or {}).get("Slurm") or {}
    section: dict[str, Any] = {}
    if config.get("SlurmConfigStrategy"):
        section["config_strategy"] = config["SlurmConfigStrategy"]
    database = config.get("AccountingDatabase")
    if database:
        section["accounting"] = _accounting(database, stack)
        if "create" in section["accounting"]:
            text = "in an existing network, name subnets in two zones for the database in control_plane_subnet_ids"
            imported.note("network.existing", text)
    if OBSERVABILITY_EXTENSION in extensions:
        section["observability_extension"] = True
    for name in sorted({*extensions} - {OBSERVABILITY_EXTENSION}):
        imported.note("slurm", f"extension {name} is left out, the file has no setting for it")
    for group in request.get("InstanceGroups", []):
        if not group.get("SlurmConfig"):
            path = f"cluster.instance_groups.{group['InstanceGroupName']}"
            imported.note(path, "what Slurm makes of the group is not known; say slurm.node_type", decide=True)
    return {"slurm": section} if section else {}


def _accounting(database: Mapping[str, Any], stack: frozenset[str]) -> dict[str, Any]:
    if database["SecretArn"] in stack:
        return {"create": True}
    return of_model(Accounting, read_back(Accounting, database))


def existing_eks(cluster_arn: str, *, imported: Draft) -> dict[str, Any]:
    """``eks`` section of an existing EKS cluster."""
    name = cluster_arn.rpartition("/")[2]
    # SageMaker guide, sagemaker-hyperpod-eks: "a 1-to-1 mapping between an EKS cluster ... and a HyperPod cluster".
    text = f"EKS cluster {name} is used as it is; it can have one HyperPod cluster at a time"
    imported.note("eks.existing", text)
    return {"existing": {"cluster": cluster_arn}}


def eks(observed: ObservedCluster, *, keeping: KeptParts, imported: Draft) -> dict[str, Any]:
    arn = observed.cluster["Orchestrator"]["Eks"]["ClusterArn"]
    if keeping.keeps("eks", arn):
        return _existing(arn, observed, imported)
    described = observed.eks
    if described is None:
        imported.note(
            "eks.kubernetes_version", "AWS did not return the version of the control plane; set it", decide=True
        )
        return {"kubernetes_version": "1.34"}
    section: dict[str, Any] = {"kubernetes_version": described["version"]}
    access = described.get("resourcesVpcConfig") or {}
    if access.get("endpointPublicAccess"):
        section["public_access_cidrs"] = list(access.get("publicAccessCidrs") or ["0.0.0.0/0"])
    admins = [role for role in observed.admin_roles if role.rpartition("/")[2] not in observed.stack]
    if admins:
        section["admin_role_arns"] = sorted(admins)
    if TRAINING_OPERATOR in observed.addons:
        section["training_operator"] = True
    if observed.scheduler is not None or observed.quotas or TASK_GOVERNANCE in observed.addons:
        section["task_governance"] = _task_governance(observed.scheduler, observed.quotas, imported)
    if OBSERVABILITY in observed.addons:
        section["observability_addon"] = True
        imported.note("eks.observability_addon", "it needs observability.prometheus", decide=True)
    for addon in sorted(set(observed.addons) - KNOWN_ADDONS):
        imported.note("eks", f"add-on {addon} is left out, the file has no setting for it")
    if not keeping.owns(arn):
        imported.note("eks", f"a new control plane is made; what runs in {described['name']} has to be deployed again")
    return section


def _existing(arn: str, observed: ObservedCluster, imported: Draft) -> dict[str, Any]:
    section = existing_eks(arn, imported=imported)
    if observed.scheduler is not None or observed.quotas:
        section["task_governance"] = _task_governance(observed.scheduler, observed.quotas, imported)
    for addon in sorted(observed.addons):
        imported.note("eks.existing", f"its add-on {addon} stays as it is")
    return section


def _task_governance(
    config: Mapping[str, Any] | None, quotas: Sequence[Mapping[str, Any]], imported: Draft
) -> dict[str, Any]:
    section: dict[str, Any] = {"policy": False}
    if config is not None:
        fair = config.get("FairShare", "Enabled") == "Enabled"
        section = read_back(TaskGovernance, {"SchedulerConfig": config}) | {"fair_share": fair}
    by_name = sorted(
        quotas, key=lambda quota: str(quota["ComputeQuotaTarget"]["TeamName"])
    )  # AWS's order is of creation
    teams = [_team(quota, imported) for quota in by_name]
    return section | ({"teams": teams} if teams else {})


def _team(quota: Mapping[str, Any], imported: Draft) -> dict[str, Any]:
    config = quota.get("ComputeQuotaConfig") or {}
    found = of_model(Team, read_back(Team, quota))
    path = f"eks.task_governance.teams.{found['name']}"
    for entry in config.get("ComputeQuotaResources") or []:
        if "Count" not in entry:
            imported.note(path, f"its part of an {entry['InstanceType']} is left out: the file has whole instances")
    if (config.get("ResourceSharingConfig") or {}).get("AbsoluteBorrowLimits"):
        imported.note(path, "limits to borrowing by instance type are left out, the file has no setting for them")
    if "sharing" in found:  # the default alone borrows
        found.pop("borrow_limit_percent", None)
    return found
