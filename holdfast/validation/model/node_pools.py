"""Node pools of Karpenter."""

from dataclasses import dataclass

from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NodePool(Item):
    """A NodePool (karpenter.sh/v1) and its HyperpodNodeClass (karpenter.sagemaker.amazonaws.com/v1)."""

    name: str
    instance_groups: tuple[str, ...]
    """Of the node class."""
    vcpus: int | None = None
    """Limits of all nodes together. None: no limit."""
    memory_gib: int | None = None
    gpus: int | None = None
