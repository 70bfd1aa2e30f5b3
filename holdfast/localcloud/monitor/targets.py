"""Agents of the local cloud that serve metrics, by their configuration on the nodes."""

import json
from typing import Any

from holdfast.localcloud.monitor.configuration import ScrapeTarget
from holdfast.localcloud.nodes import Fleet, Node, NodeError

_CONFIGURATION = "/etc/holdfast/agent.json"
_TOKEN = "/var/lib/holdfast-agent/metrics.token"  # noqa: S105 - a path


def targets(fleet: Fleet) -> tuple[ScrapeTarget, ...]:
    """Return the targets on running nodes whose agent has created its token."""
    return tuple(found for node in fleet.nodes() if (found := _target(node)) is not None)


def _target(node: Node) -> ScrapeTarget | None:
    try:
        if not node.alive():
            return None  # what it wrote can still be read
        reported: Any = json.loads(node.read_file(_CONFIGURATION))
        port = reported.get("metrics.port")
        if not isinstance(port, int) or not port:
            return None
        token = node.read_file(reported.get("metrics.token_path", _TOKEN)).decode("ascii").strip()
    except (OSError, NodeError, ValueError, AttributeError):  # it is being made, or replaced
        return None
    return ScrapeTarget(
        instance_id=node.spec.instance_id,
        instance=node.spec.hostname,
        address=f"{node.spec.address}:{port}",
        token=token,
    )
