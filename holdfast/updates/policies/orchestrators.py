from holdfast.config import Slurm
from holdfast.updates.policies.cluster import (
    CREATE_ONLY,
    LIFECYCLE_UPDATE,
    NAME_IS_TAKEN,
    REPLACE_NODES,
    SLURM_MIGRATION,
    UPDATE_CLUSTER,
)
from holdfast.updates.policies.effects import Case, Effect, Policy, vanishes

ACCOUNTING_API = "SageMaker API, ClusterAccountingDatabase"
ACCOUNTING = "SageMaker guide, sagemaker-hyperpod-external-accounting-db-slurm"
KEPT_OUTSIDE = "a cluster that keeps its accounting outside cannot go back to the database on its controller"
SLURM_DEFAULTS = Slurm().model_dump(mode="json")
NODE_POOLS = "Karpenter documentation, Disruption: deleting a NodePool deletes its nodes"
EKS_UPDATE = "EKS API, UpdateClusterConfig and CreateAccessEntry"


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


ORCHESTRATORS = (
    Policy(
        settings=("slurm",),
        effect=Effect.IN_PLACE,
        reason="settings of Slurm take the place of their defaults, or the other way round",
        source=UPDATE_CLUSTER,
        cases=(
            Case(
                when="the new values are the former defaults",
                holds=lambda edit: (edit.old or SLURM_DEFAULTS) == (edit.new or SLURM_DEFAULTS),
                effect=Effect.NOTHING,
                reason="the cluster has these settings already",
            ),
            Case(
                when="it goes with its accounting database",
                holds=lambda edit: vanishes(edit) and edit.old["accounting"] is not None,
                effect=Effect.REFUSED,
                reason=KEPT_OUTSIDE,
                action="leave slurm.accounting as it is",
            ),
        ),
    ),
    Policy(
        settings=("slurm.config_strategy",),
        effect=Effect.IN_PLACE,
        reason="the next update of the cluster goes by it; Overwrite discards edits of slurm.conf by hand",
        action="with Managed, undo edits of slurm.conf first, or the update fails",
        source=SLURM_MIGRATION,
    ),
    Policy(
        settings=("slurm.observability_extension",),
        effect=Effect.IN_PLACE,
        reason="the extension is installed on the nodes, or removed from them; what it has sent stays",
        source="SageMaker API, CreateClusterExtension and DeleteClusterExtension",
    ),
    Policy(
        settings=("slurm.lending",),
        effect=Effect.NEW_NODES,
        reason="the lifecycle writes it on a new controller; the agent of one that runs keeps what it was started with",
        action=REPLACE_NODES,
        source=LIFECYCLE_UPDATE,
    ),
    Policy(
        settings=("slurm.accounting",),
        effect=Effect.IN_PLACE,
        reason="slurmdbd begins or stops to keep its records in this database; records are not carried over",
        source=f"{ACCOUNTING_API}; {ACCOUNTING}",
        cases=(
            Case(
                when="the database is given up",
                holds=vanishes,
                effect=Effect.REFUSED,
                reason=KEPT_OUTSIDE,
                action="leave slurm.accounting as it is",
            ),
        ),
    ),
    Policy(
        settings=tuple(f"slurm.accounting.{leaf}" for leaf in ("create", "endpoint", "port", "database", "secret_arn")),
        effect=Effect.IN_PLACE,
        reason="slurmdbd gets another database or other credentials; records of jobs are not carried over",
        action="dump the old database and load it into the new one",
        source=ACCOUNTING_API,
    ),
    Policy(
        settings=("eks",),
        effect=Effect.REPLACES_CLUSTER,
        reason="a cluster cannot change its orchestrator: another one is made and this one deleted",
        action="wait until no job runs; data outside the file systems is lost",
        source=CREATE_ONLY,
        cases=(NAME_IS_TAKEN,),
    ),
    Policy(
        settings=("eks.kubernetes_version",),
        effect=Effect.IN_PLACE,
        reason="the control plane is upgraded; nodes keep their kubelet until their software is updated",
        action="upgrade add-ons, then call UpdateClusterSoftware",
        source="EKS API, UpdateClusterVersion",
        cases=(
            Case(
                when="the control plane is one that is there already",
                holds=lambda edit: edit.after.get("existing") is not None or None in (edit.old, edit.new),
                effect=Effect.NOTHING,
                reason="its version is its owner's",
            ),
            Case(
                when="the version falls",
                holds=lambda edit: _minor(edit.new) < _minor(edit.old),
                effect=Effect.REFUSED,
                reason="EKS does not go back to an older version",
                action="leave the version as it is",
            ),
            Case(
                when="the version rises by more than one",
                holds=lambda edit: _minor(edit.new) > _minor(edit.old) + 1,
                effect=Effect.REFUSED,
                reason="EKS goes up by one minor version at a time",
                action="deploy each minor version in between, one after the other",
            ),
        ),
    ),
    Policy(
        settings=("eks.public_access_cidrs", "eks.admin_role_arns"),
        effect=Effect.IN_PLACE,
        reason="who reaches and administers the Kubernetes API changes within minutes",
        source=EKS_UPDATE,
    ),
    Policy(
        settings=("eks.on_delete",),
        effect=Effect.IN_PLACE,
        reason="deletion policies of the EKS cluster, its role and its log are changed, nothing else",
        source="CloudFormation, DeletionPolicy attribute",
    ),
    Policy(
        settings=("eks.install_on_nodes",),
        effect=Effect.IN_PLACE,
        reason="CoreDNS, add-ons, operators and agents are installed, or removed from nodes that run jobs",
        source="EKS API, CreateAddon and DeleteAddon",
    ),
    Policy(
        settings=("eks.chart_archives",),
        effect=Effect.IN_PLACE,
        reason="the same charts, at the same commits, come from elsewhere",
        source="Holdfast",
    ),
    Policy(
        settings=("eks.training_operator", "eks.observability_addon"),
        effect=Effect.IN_PLACE,
        reason="the add-on is installed or removed; without its operator, running jobs are not looked after",
        source="EKS API, CreateAddon and DeleteAddon",
    ),
    Policy(
        settings=("eks.node_pools[]",),
        effect=Effect.IN_PLACE,
        reason="Karpenter adds nodes for the new pool; a pool that is removed loses its nodes and their pods",
        action="remove node pools in a deployment before the one that removes cluster.auto_scaler or their groups",
        source=NODE_POOLS,
    ),
    Policy(
        settings=("eks.node_pools[].name",),
        effect=Effect.IN_PLACE,
        reason="it is another pool: the nodes of the old one are removed, with their pods",
        source=NODE_POOLS,
    ),
    Policy(
        settings=("eks.node_pools[].instance_groups",),
        effect=Effect.IN_PLACE,
        reason="Karpenter replaces its nodes in a group that is taken out, within its disruption budget of 10 percent",
        source="SageMaker guide, sagemaker-hyperpod-eks-autoscaling-nodeclass",
    ),
    Policy(
        settings=(
            "eks.node_pools[].limits",
            "eks.node_pools[].limits.vcpus",
            "eks.node_pools[].limits.memory_gib",
            "eks.node_pools[].limits.gpus",
            "eks.node_pools[].consolidation_policy",
            "eks.node_pools[].consolidate_after_s",
        ),
        effect=Effect.IN_PLACE,
        reason="Karpenter goes by it from now on; a lower limit removes no node",
        source="Karpenter documentation, NodePools and Disruption",
    ),
    Policy(
        settings=(
            "eks.task_governance",
            "eks.task_governance.fair_share",
            "eks.task_governance.priority_classes[]",
            "eks.task_governance.priority_classes[].name",
            "eks.task_governance.priority_classes[].weight",
        ),
        effect=Effect.IN_PLACE,
        reason="jobs are admitted by the new rules; jobs that name a class that is gone are not admitted",
        source="SageMaker API, UpdateClusterSchedulerConfig",
    ),
    Policy(
        settings=(
            "eks.task_governance.policy",
            "eks.task_governance.teams[]",
            "eks.task_governance.teams[].name",
            "eks.task_governance.teams[].weight",
            "eks.task_governance.teams[].quota",
            "eks.task_governance.teams[].sharing",
            "eks.task_governance.teams[].borrow_limit_percent",
            "eks.task_governance.teams[].preemption",
        ),
        effect=Effect.IN_PLACE,
        reason="what a team may use changes; jobs beyond it give way to those of the teams whose share it is",
        source="SageMaker API, CreateComputeQuota, UpdateComputeQuota and DeleteComputeQuota",
    ),
)
