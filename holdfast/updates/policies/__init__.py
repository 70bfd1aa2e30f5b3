"""Update policies of all settings."""

from holdfast.updates.policies.cluster import CLUSTER
from holdfast.updates.policies.effects import MEANINGS, Case, Edit, Effect, Policy
from holdfast.updates.policies.environment import HEALTH, HOLDFAST, IDENTITY, NETWORK, OBSERVABILITY
from holdfast.updates.policies.existing import EXISTING
from holdfast.updates.policies.groups import GROUPS
from holdfast.updates.policies.orchestrators import ORCHESTRATORS
from holdfast.updates.policies.storage import NODES, STORAGE

__all__ = [
    "CLUSTER",
    "EXISTING",
    "GROUPS",
    "HEALTH",
    "HOLDFAST",
    "IDENTITY",
    "MEANINGS",
    "NETWORK",
    "NODES",
    "OBSERVABILITY",
    "ORCHESTRATORS",
    "STORAGE",
    "Case",
    "Edit",
    "Effect",
    "Policy",
]
