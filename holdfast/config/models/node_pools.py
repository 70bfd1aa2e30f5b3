from typing import Annotated, Literal

from pydantic import Field

from holdfast.catalog import bounds
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.refusals import Allowed, number_in_words

_GROUPS = bounds("node_class_groups")
_Total = Annotated[int, Field(ge=1), Allowed("a whole number from 1", 192, number_in_words)]


class NodePoolLimits(Model):
    """What the nodes of a pool have together at most (Karpenter: spec.limits)."""

    vcpus: _Total | None = None
    """vCPUs of all nodes. Default: no limit"""
    memory_gib: _Total | None = None
    """Memory of all nodes, in GiB. Default: no limit"""
    gpus: _Total | None = None
    """NVIDIA GPUs of all nodes. Default: no limit"""


class NodePool(Model):
    """Instance groups whose nodes Karpenter adds for pending pods and removes (HyperpodNodeClass and NodePool)."""

    name: Annotated[
        str,
        Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63),
        Allowed("1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit", "burst"),
    ]
    """Unique among the pools. Nodes have it as the label karpenter.sh/nodepool; changing it replaces them."""
    instance_groups: Annotated[
        tuple[aws.GroupName, ...],
        Field(min_length=_GROUPS.least, max_length=_GROUPS.most, strict=False),
        Allowed(f"a list of {_GROUPS} names of instance groups", ["burst"]),
    ]
    """Groups with instance_count 0. Zones, types, labels and taints of the nodes are those of their groups."""
    limits: NodePoolLimits | None = None
    """Beyond them Karpenter adds no node. Default: none, as many nodes as pods need"""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = "WhenEmpty"
    """Nodes that Karpenter removes: those without pods, or also those whose pods fit on other nodes, where they are
    started again. Default: WhenEmpty"""
    consolidate_after_s: fields.WaitSeconds = 300
    """Seconds without a change of its pods before a node is removed. Default: 300"""


NodePools = Annotated[
    tuple[NodePool, ...],
    # Left out of a stack's metadata where there are none, so that existing templates stay as they are.
    Field(max_length=50, strict=False, exclude_if=lambda pools: not pools),
    Allowed("a list of at most 50 node pools", []),
]
