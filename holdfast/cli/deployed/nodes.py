"""Commands on a node from outside: namespaces of the local cluster, sessions of Systems Manager on AWS."""

import contextlib
import functools
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.cluster import cluster_arn, cluster_nodes, hostname_of
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.node_access import (
    ForwardedPort,
    NamespaceNodeAccess,
    NodeAccess,
    NodeAccessError,
    SessionApi,
    SsmNodeAccess,
    forwarded,
)
from holdfast.cli.terminal import CommandError
from holdfast.session_manager import ClusterTarget

if TYPE_CHECKING:
    from holdfast.localcloud.nodes import Node

NOT_CONNECTED = "TargetNotConnected"
RIGHTS = "docs/do/on-aws.md, Rights"


def instance(context: Context, *, node: str) -> "Node":
    """Return the local instance of any of its names. Raises: CommandError: no such instance, or a cluster on AWS."""
    from holdfast.localcloud.nodes import Fleet

    require_local(context, what="this command")
    present = Fleet(home=context.local.home).nodes()
    for candidate in present:
        if node.removeprefix("hyperpod-") in (
            candidate.spec.instance_id,
            candidate.spec.hostname,
            candidate.spec.address,
        ):
            return candidate
    names = ", ".join(f"{n.spec.hostname} ({n.spec.instance_id})" for n in present) or "none"
    raise CommandError(f"there is no node {node!r}; the nodes are: {names}")


def require_local(context: Context, *, what: str) -> None:
    """Raise CommandError for a cluster on AWS, before anything is touched."""
    if context.session.cloud == "aws":
        raise CommandError(
            f"{what} works on the local HyperPod alone, and {context.session.cluster_name} is a cluster on AWS; "
            "nothing was touched; for a rehearsal: holdfast up local"
        )


def instance_status(context: Context, *, instance_id: str) -> str:
    """HyperPod's status, such as Running; empty if the cluster has no such instance."""
    nodes = cluster_nodes(context)
    return next((str(one["InstanceStatus"]["Status"]) for one in nodes if one["InstanceId"] == instance_id), "")


def run(
    context: Context,
    *,
    node: str,
    argv: Sequence[str],
    user: str | None = None,
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 20.0,
) -> "subprocess.CompletedProcess[str]":
    """
    Run ``argv`` on ``node`` and return its output; see ``NodeAccess.run``.

    Shell scripts in ``argv`` are constants: values are passed as ``"$1"`` or as ``text``.

    Raises:
        CommandError: no such node, or no answer in time.
    """
    try:
        with _as_command_errors(context, node=node):
            return _access(context).run(node=node, argv=argv, user=user, text=text, env=env, timeout_s=timeout_s)
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"{argv[0]} on node {node} did not end within {timeout_s:g} s; see: holdfast status", exit_code=1
        ) from None


def attach(context: Context, *, node: str, argv: Sequence[str], user: str) -> int:
    """Run ``argv`` on the caller's terminal; return its exit code. Raises: CommandError: no such node, or no answer."""
    with _as_command_errors(context, node=node):
        return _access(context).attach(node=node, argv=argv, user=user)


def relay(context: Context, *, node: str, port: int, source: int, sink: int) -> None:
    """Relay between descriptors and a port of ``node``. Raises: CommandError: no such node or port, or no answer."""
    with _as_command_errors(context, node=node):
        _access(context).relay(node=node, port=port, source=source, sink=sink)


def forward_port(
    context: Context, *, node: str, local: int, port: int
) -> "contextlib.AbstractContextManager[ForwardedPort]":
    """Return the port of this machine that leads to ``port`` of ``node`` inside of the context."""
    return forwarded(local, lambda ends: relay(context, node=node, port=port, source=ends, sink=ends))


def complete_node(incomplete: str) -> list[str]:
    """Return host names and instance ids; none without a local cluster."""
    from holdfast.localcloud import from_environment
    from holdfast.localcloud.nodes import Fleet

    with contextlib.suppress(Exception):  # a completion has no place for a message
        specs = [node.spec for node in Fleet(home=from_environment().home).nodes()]
        names = [name for spec in specs for name in (spec.hostname, spec.instance_id)]
        return [name for name in names if name.startswith(incomplete)]
    return []


def _access(context: Context) -> NodeAccess:
    if context.session.cloud == "aws":
        return SsmNodeAccess(SessionApi(context.ask), target_of=_targets(context).find)
    return NamespaceNodeAccess(lambda node: instance(context, node=node))


@functools.cache
def _targets(context: Context) -> "_SessionTargets":
    return _SessionTargets(context)


class _SessionTargets:
    """Reads the nodes once, and again for a name that it does not have."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[str, str] = {}

    def find(self, node: str) -> str:
        """Return the target of an instance id, host name, address or Kubernetes name. Raises: CommandError."""
        name = node.removeprefix("hyperpod-")
        if name not in self._known:
            nodes = cluster_nodes(self._context)
            cluster_id = cluster_arn(self._context).rpartition("/")[2]
            self._known = {
                name: str(
                    ClusterTarget(cluster_id=cluster_id, group=one["InstanceGroupName"], instance_id=one["InstanceId"])
                )
                for one in nodes
                for name in _names(one)
            }
        if name not in self._known:
            ids = ", ".join(one["InstanceId"] for one in nodes) or "none"
            raise CommandError(f"cluster {self._context.session.cluster_name} has no node {node!r}; its nodes: {ids}")
        return self._known[name]

    def forget(self) -> None:
        """A node may have been replaced."""
        self._known = {}


def _names(node: dict[str, Any]) -> set[str]:
    """Instance id, host name, and address, which the host name has."""
    hostname = hostname_of(node)
    return {str(node["InstanceId"]), hostname, hostname.removeprefix("ip-").replace("-", ".")} - {""}


@contextlib.contextmanager
def _as_command_errors(context: Context, *, node: str) -> Iterator[None]:
    try:
        yield
    except NodeAccessError as error:
        raise CommandError(f"node {node} does not answer: {error}; see: holdfast status", exit_code=1) from None
    except AwsError as error:
        if error.code == NOT_CONNECTED:
            _targets(context).forget()
            raise CommandError(
                f"node {node} does not answer: its SSM agent is not connected; see: holdfast status", exit_code=1
            ) from None
        if error.code.startswith("AccessDenied"):
            raise CommandError(
                f"sessions to node {node} are refused: {error.message}; required: the rights of {RIGHTS}", exit_code=1
            ) from None
        raise CommandError(f"session to node {node}: AWS refused: {error}", exit_code=1) from None
