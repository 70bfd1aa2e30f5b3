"""Update policies of names, keys, network and observability."""

from holdfast.config import Health, Observability
from holdfast.updates.policies.cluster import CREATE_ONLY, LIFECYCLE_UPDATE, NAME_IS_TAKEN, REPLACE_NODES
from holdfast.updates.policies.effects import Case, Edit, Effect, Policy, appears, vanishes

SUBNET = "CloudFormation registry, AWS::EC2::Subnet createOnlyProperties"
NETWORK_SOURCE = f"{CREATE_ONLY}: VpcConfig; AWS::FSx::FileSystem: SubnetIds, SecurityGroupIds"
NEW_NETWORK = "make another environment in that network, and carry the data over through S3"


def _has_no_file_system(edit: Edit) -> bool:
    return edit.deployed["storage"]["lustre"] is None and edit.deployed["storage"]["home"] is None


def _same_block(edit: Edit) -> bool:
    return edit.desired["network"]["existing"] is None and (
        edit.deployed["network"]["cidr"] == edit.desired["network"]["cidr"]
    )


def _stays_existing(edit: Edit) -> bool:
    return all(environment["network"]["existing"] is not None for environment in (edit.deployed, edit.desired))


BY_SUBNET = Case(
    when="the network is one that is there already",
    holds=_stays_existing,
    effect=Effect.NOTHING,
    reason="its subnet determines its zone",
)
WITHOUT_FILE_SYSTEM = Case(
    when="there is no file system",
    holds=_has_no_file_system,
    effect=Effect.REPLACES_CLUSTER,
    reason="the cluster's subnet and security group cannot be changed: another cluster is made",
    action="wait until no job runs",
)

IDENTITY = (
    Policy(
        settings=("name", "cloud", "account", "region"),
        effect=Effect.NOTHING,
        reason="the file describes another environment, which is made beside the deployed one",
        action="take the old one down when it is not needed any more",
        source="CloudFormation, a stack has one name, account and region",
    ),
    Policy(
        settings=("termination_protection",),
        effect=Effect.IN_PLACE,
        reason="CloudFormation refuses to delete the stack from now on, or allows it",
        source="CloudFormation API, UpdateTerminationProtection",
    ),
    Policy(
        settings=("sessions", "sessions.default_user"),
        effect=Effect.IN_PLACE,
        reason="the next sessions by this document run as the other user; running ones stay as they are",
        source="Systems Manager API, UpdateDocument and UpdateDocumentDefaultVersion",
    ),
    Policy(
        settings=("encryption.kms_key",),
        effect=Effect.REPLACES_FILE_SYSTEM,
        reason="the key of a file system, and of Kubernetes secrets, is chosen when it is made",
        action="copy the data first, then allow it; replace all nodes afterwards, they have mounted the old one",
        source="CloudFormation registry, AWS::FSx::FileSystem and AWS::EKS::Cluster createOnlyProperties",
        cases=(
            Case(
                when="EKS is the orchestrator",
                holds=lambda edit: edit.deployed["eks"] is not None,
                effect=Effect.REFUSED,
                reason="the key of Kubernetes secrets is fixed, and a new control plane would need the name of the old",
                action="make another environment with the key, and carry the data over through S3",
            ),
            Case(
                when="there is no file system",
                holds=_has_no_file_system,
                effect=Effect.IN_PLACE,
                reason="buckets, logs and topics use the key for what is written from now on",
            ),
        ),
    ),
)

NETWORK = (
    Policy(
        settings=(
            "network.cidr",
            "network.existing",
            "network.existing.vpc_id",
            "network.existing.subnet_id",
            "network.existing.security_group_id",
        ),
        effect=Effect.REPLACES_FILE_SYSTEM,
        reason="cluster and file systems cannot change their network: a new cluster and empty file systems are created",
        action="copy the data first, then allow it",
        source=NETWORK_SOURCE,
        cases=(NAME_IS_TAKEN, WITHOUT_FILE_SYSTEM),
    ),
    Policy(
        settings=("network.availability_zone", "network.availability_zone_id"),
        effect=Effect.REPLACES_FILE_SYSTEM,
        reason="a subnet lies in one zone: a new cluster and empty file systems are created in another one",
        action="copy the data first, then allow it",
        source=f"{SUBNET}; {NETWORK_SOURCE}",
        cases=(
            BY_SUBNET,
            Case(
                when="the network keeps its addresses",
                holds=_same_block,
                effect=Effect.REFUSED,
                reason="the new subnet is made while the old one still has its addresses",
                action=NEW_NETWORK,
            ),
            NAME_IS_TAKEN,
            WITHOUT_FILE_SYSTEM,
        ),
    ),
    Policy(
        settings=("network.additional_availability_zones",),
        effect=Effect.IN_PLACE,
        reason="a subnet of each further zone is made or removed",
        source=SUBNET,
        cases=(
            Case(
                when="a zone is removed or moves in the list",
                holds=lambda edit: tuple(edit.new or ())[: len(edit.old or ())] != tuple(edit.old or ()),
                effect=Effect.REFUSED,
                reason="the subnet is in use, or another one would get its addresses",
                action="keep the zones in their order, and add new ones at the end",
            ),
        ),
    ),
    Policy(
        settings=("network.control_plane_availability_zone", "network.control_plane_availability_zone_id"),
        effect=Effect.IN_PLACE,
        reason="a subnet in a second zone is made or removed",
        source=SUBNET,
        cases=(
            BY_SUBNET,
            Case(
                when="it moves to another zone",
                holds=lambda edit: not appears(edit) and not vanishes(edit),
                effect=Effect.REFUSED,
                reason="the new subnet is made while the old one still has its addresses",
                action=NEW_NETWORK,
            ),
            Case(
                when="EKS loses it",
                holds=lambda edit: vanishes(edit) and edit.desired["eks"] is not None,
                effect=Effect.REFUSED,
                reason="EKS requires subnets in two zones",
                action="leave it",
            ),
        ),
    ),
    Policy(
        settings=("network.egress",),
        effect=Effect.IN_PLACE,
        reason="routes change at once: connections of nodes to the internet begin to work or break",
        action="before none, see that neither jobs nor lifecycle scripts fetch from the internet",
        source="EC2 API, CreateRoute and DeleteRoute",
    ),
    Policy(
        settings=("network.flow_logs",),
        effect=Effect.IN_PLACE,
        reason="the log is made or removed beside the traffic",
        source="EC2 API, CreateFlowLogs",
    ),
    Policy(
        settings=(
            "network.existing.vpc_cidr",
            "network.existing.route_table_id",
            "network.existing.control_plane_subnet_ids",
        ),
        effect=Effect.IN_PLACE,
        reason="rules, routes and the network interfaces of the control plane are changed",
        source="EC2 API, ModifyVpcEndpoint; EKS API, UpdateClusterConfig",
    ),
    Policy(
        settings=("network.existing.subnet_cidr",),
        effect=Effect.NOTHING,
        reason="it is only compared with the addresses that nodes need",
        source="Holdfast",
    ),
)

_HAVE_DATA = ("prometheus", "grafana", "mlflow")
"""Their loss is a policy of its own; the other settings of how a cluster is watched are all changed in place."""
OBSERVABILITY = (
    Policy(
        settings=tuple(f"observability.{name}" for name in Observability.model_fields if name not in _HAVE_DATA),
        effect=Effect.IN_PLACE,
        reason="it is made, changed or removed beside the cluster; a shorter retention deletes older logs",
        source="CloudWatch, CloudWatch Logs, SNS and EKS APIs",
    ),
    Policy(
        settings=("observability.prometheus", "observability.grafana", "observability.mlflow"),
        effect=Effect.IN_PLACE,
        reason="it is made beside the cluster",
        source="CloudFormation guide, DeletionPolicy",
        cases=(
            Case(
                when="it is taken away",
                holds=lambda edit: not edit.new,
                effect=Effect.REPLACES_RESOURCE,
                reason="the stack no longer has it; storage.on_delete decides whether its metrics and runs stay",
                action="export what is still needed",
            ),
        ),
    ),
    Policy(
        settings=("observability.grafana.authentication",),
        effect=Effect.IN_PLACE,
        reason="people sign in another way from now on",
        source="Managed Grafana API, UpdateWorkspaceAuthentication",
    ),
)

HEALTH = (
    Policy(
        settings=tuple(f"health.{name}" for name in Health.model_fields),
        effect=Effect.NEW_NODES,
        reason="the lifecycle writes it on new nodes; agents that run keep what they were started with",
        action=REPLACE_NODES,
        source=LIFECYCLE_UPDATE,
    ),
)

HOLDFAST = (
    Policy(
        settings=("goodput.target_percent", "goodput.checkpoint_interval_s"),
        effect=Effect.NOTHING,
        reason="only holdfast plan and holdfast check read it",
        source="Holdfast",
    ),
    Policy(
        settings=("allow_replacement", "suppress"),
        effect=Effect.NOTHING,
        reason="it affects the checks of this file only",
        source="Holdfast",
    ),
    Policy(
        settings=tuple(f"stand_ins.{what}" for what in ("gpu", "efa", "lustre", "image")),
        effect=Effect.IN_PLACE,
        reason="tags of the cluster say what stands in for what",
        source="SageMaker API, AddTags and DeleteTags",
    ),
)
