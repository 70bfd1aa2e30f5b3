"""Reader of node pools: objects of Kubernetes in releases of Holdfast, and in manifests of the CDK's EKS modules."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.catalog import CLUSTER
from holdfast.validation.cloudformation import UNRESOLVED, Resource, Values
from holdfast.validation.model import NodePool

_RELEASE, _MANIFEST = "Custom::HoldfastHelmRelease", "Custom::AWSCDK-EKS-KubernetesResource"
_LIMITS = {"vcpus": ("cpu", ""), "memory_gib": ("memory", "Gi"), "gpus": ("nvidia.com/gpu", "")}


class NodePoolReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def node_pools(self) -> tuple[NodePool, ...]:
        """Pools whose node class is there, too, of the only cluster; of several it is not known which one has them."""
        graph = self._values.graph
        if len(list(graph.of_type(CLUSTER))) != 1:
            return ()
        objects = [pair for each in graph.of_type(_RELEASE, _MANIFEST) for pair in self._objects(each)]
        classes = {str(_name(made)): made for _, made in objects if made.get("kind") == "HyperpodNodeClass"}
        return tuple(
            _node_pool(path, made, classes[named])
            for path, made in objects
            if made.get("kind") == "NodePool" and (named := str(_inner(made, *_CLASS_NAME))) in classes
        )

    def _objects(self, resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
        node = self._values.properties(resource).get("Values" if resource.type == _RELEASE else "Manifest")
        text = node.text()
        try:
            held = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            return
        if resource.type == _RELEASE:
            held = held.get("objects") if isinstance(held, dict) else None
        if isinstance(held, list):
            yield from ((node.path, each) for each in held if isinstance(each, dict))


_CLASS_NAME = ("spec", "template", "spec", "nodeClassRef", "name")


def _node_pool(path: str, pool: Mapping[str, Any], node_class: Mapping[str, Any]) -> NodePool:
    groups = _inner(node_class, "spec", "instanceGroups")
    return NodePool(
        path=path,
        name=str(_name(pool)),
        instance_groups=tuple(map(str, groups)) if isinstance(groups, list) else UNRESOLVED,
        **{limit: _number(_inner(pool, "spec", "limits", of), unit) for limit, (of, unit) in _LIMITS.items()},
    )


def _name(made: Mapping[str, Any]) -> Any:
    return _inner(made, "metadata", "name")


def _inner(made: Any, *path: str) -> Any:
    for part in path:
        made = made.get(part) if isinstance(made, dict) else None
    return made


def _number(quantity: Any, unit: str) -> Any:
    """Whole quantity in a unit; None if absent, UNRESOLVED in another."""
    if quantity is None:
        return None
    digits = str(quantity).removesuffix(unit)
    return int(digits) if digits.isdecimal() and str(quantity).endswith(unit) else UNRESOLVED
