"""Node pools of an environment file."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import NodePool

LIMITS = ("vcpus", "memory_gib", "gpus")


def node_pools_of(file: Settings) -> Any:
    pools = () if file.eks is None else file.eks.node_pools
    return pools if pools is UNRESOLVED else tuple(_node_pool(each) for each in pools)


def _node_pool(pool: Settings) -> NodePool:
    limits = pool.limits
    if limits is None:
        return pool.item(NodePool)
    return pool.item(
        NodePool,
        places={**pool.places_in(NodePool), **limits.places(**{name: name for name in LIMITS})},
        **{name: getattr(limits, name) for name in LIMITS},
    )
