"""Creation order of resources, by DependsOn, Ref and Fn::GetAtt."""

import json
import re
from collections.abc import Iterator

from holdfast.validation.cloudformation.graph import Graph, Resource

_SUBSTITUTED = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


class Order:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._before: dict[Resource, frozenset[Resource]] = {}

    def before(self, resource: Resource) -> frozenset[Resource]:
        """All resources of its template created before it."""
        if resource not in self._before:
            seen: set[Resource] = set()
            waiting = [resource]
            while waiting:
                for needed in self._needs(waiting.pop()):
                    if needed not in seen:
                        seen.add(needed)
                        waiting.append(needed)
            self._before[resource] = frozenset(seen)
        return self._before[resource]

    def one_by_one(self, one: Resource, other: Resource) -> bool:
        return one in self.before(other) or other in self.before(one)

    def _needs(self, resource: Resource) -> Iterator[Resource]:
        names = {*resource.depends_on, *named(resource.body.get("Properties"))}
        for name in names:
            found = self._graph.find(resource.template, name)
            if found is not None:
                yield found


def named(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from named(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key == "Ref" and isinstance(item, str):
            yield item
        elif key == "Fn::GetAtt" and item and isinstance(item, str | list):
            yield item.partition(".")[0] if isinstance(item, str) else str(item[0])
        elif key == "Fn::Sub":
            yield from _SUBSTITUTED.findall(json.dumps(item, default=repr))
            yield from named(item)
        else:
            yield from named(item)
