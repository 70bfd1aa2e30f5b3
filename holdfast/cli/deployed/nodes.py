"""
Commands on a node from outside.

Local instances are entered directly; on AWS the message names the target of ``aws ssm start-session``.
"""

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.cli.deployed.cluster import cluster_nodes
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import CommandError

if TYPE_CHECKING:
    from holdfast.localcloud.nodes import Node


def instance(context: Context, *, node: str) -> "Node":
    """Return the local instance of any of its names. Raises: CommandError: no such instance, or a cluster on AWS."""
    from holdfast.localcloud.nodes import Fleet

    if context.session.cloud == "aws":
        raise CommandError(
            f"nodes on AWS are reached through SSM: aws ssm start-session --target "
            f"sagemaker-cluster:<cluster id>_<instance group>-<instance id> --region {context.session.region}"
        )
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
    Run ``argv`` on ``node`` and return its output.

    Shell scripts in ``argv`` are constants: values are passed as ``"$1"`` or as ``text``.

    Raises:
        CommandError: no such node, or no answer in time.
    """
    from holdfast.localcloud.nodes import NodeError

    try:
        return instance(context, node=node).run(list(argv), timeout_s=timeout_s, user=user, input=text, env=env)
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"{argv[0]} on node {node} did not end within {timeout_s:g} s; see: holdfast status", exit_code=1
        ) from None
    except (NodeError, OSError) as error:
        raise CommandError(f"node {node} does not answer: {error}; see: holdfast status", exit_code=1) from None


def complete_node(incomplete: str) -> list[str]:
    """Return host names and instance ids; none without a local cluster."""
    from holdfast.localcloud import from_environment
    from holdfast.localcloud.nodes import Fleet

    with contextlib.suppress(Exception):  # a completion has no place for a message
        specs = [node.spec for node in Fleet(home=from_environment().home).nodes()]
        names = [name for spec in specs for name in (spec.hostname, spec.instance_id)]
        return [name for name in names if name.startswith(incomplete)]
    return []
