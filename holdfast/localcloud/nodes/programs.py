"""Which programs run on which node, from one look at /proc: no program has to be started on a node for it."""

from collections.abc import Iterable, Mapping

from holdfast.localcloud.nodes.kernel import proc

from .node import Node


def census(nodes: Iterable[Node], *, names: frozenset[str]) -> Mapping[str, Mapping[str, str]]:
    """Instance id -> program -> its state as ps shows it, of the programs with these names; zombies are not there."""
    spaces = {proc.namespace(node.pid, "pid"): node.spec.instance_id for node in nodes if node.alive()}
    spaces.pop("", None)
    found: dict[str, dict[str, str]] = {instance_id: {} for instance_id in spaces.values()}
    for pid in proc.pids():
        instance_id = spaces.get(proc.namespace(pid, "pid"))
        if instance_id is None:
            continue
        name = proc.program(pid)
        state = proc.state(pid) if name in names else ""
        if state and state not in "ZX":
            found[instance_id][name] = state
    return found
