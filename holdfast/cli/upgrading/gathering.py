"""Facts for a plan: the cluster by AWS's API, jobs by Slurm's controller and the agents of its nodes."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.cli.deployed import (
    Context,
    controller_hostname,
    describe_cluster,
    hostname_of,
    known_workloads,
    operated_sizes,
    run,
)
from holdfast.cli.terminal import CommandError
from holdfast.cli.upgrading.plan import COMPUTE, GroupFacts, JobFacts, NodeFacts, Situation, jobs_of
from holdfast_common import elastic_nodes, slurm_answers

_SQUEUE = ("squeue", "--noheader", "--array", "--states=R,CG,S", "--format=%F|%i|%N|%k|%j")


def gather(context: Context) -> Situation:
    """Return the facts. Raises: CommandError: no such cluster, or it is not InService."""
    cluster, nodes = describe_cluster(context)
    name = context.session.cluster_name
    if not cluster:
        raise CommandError(
            f"there is no cluster {name} in {context.session.region}; to list environments: holdfast use"
        )
    if cluster["ClusterStatus"] != "InService":
        raise CommandError(f"cluster {name} is {cluster['ClusterStatus']}; allowed: InService; see: holdfast status")
    groups = tuple(map(_group, cluster.get("InstanceGroups", [])))
    facts = tuple(
        NodeFacts(
            instance_id=one["InstanceId"],
            host=hostname_of(one),
            group=one["InstanceGroupName"],
            status=one["InstanceStatus"]["Status"],
        )
        for one in nodes
    )
    if context.orchestrator == "eks":
        return Situation(orchestrator="eks", groups=groups, nodes=facts, **_on_kubernetes(context, facts))
    compute = {group.name for group in groups if group.node_type == COMPUTE}
    hosts = frozenset(one.host for one in facts if one.group in compute)
    try:
        jobs, idle, unknown = _jobs(context, hosts=hosts), _idle(context, hosts=hosts), ""
    except CommandError as error:
        jobs, idle, unknown = (), frozenset[str](), str(error)
    return Situation(orchestrator="slurm", groups=groups, nodes=facts, jobs=jobs, idle=idle, unknown=unknown)


def _on_kubernetes(context: Context, nodes: Sequence[NodeFacts]) -> dict[str, Any]:
    """Return ``jobs``, or ``unknown``: why they cannot be listed."""
    host_of = {f"hyperpod-{node.instance_id}": node.host for node in nodes}
    try:
        jobs, sizes = known_workloads(context), operated_sizes(context)
    except CommandError as error:
        return {"unknown": str(error)}
    return {
        "jobs": tuple(
            JobFacts(
                job=str(one.job),
                ranks=frozenset(host_of[name] for name in one.nodes if name in host_of),
                spare_count=sizes.get(one.job, (0, 0))[0],
                least=sizes.get(one.job, (0, 0))[1],
                launched=one.job in sizes,
            )
            for one in jobs
            if not one.has_ended
        )
    }


def ask_controller(context: Context, argv: Sequence[str]) -> str:
    """Return the output of a command of Slurm. Raises: CommandError: it failed."""
    answer = run(context, node=controller_hostname(context), argv=argv)
    if answer.returncode:
        raise CommandError(f"{argv[0]}: {answer.stderr.strip() or answer.stdout.strip()}", exit_code=1)
    return answer.stdout


def slurm_nodes(context: Context) -> tuple[slurm_answers.SlurmNode, ...]:
    return slurm_answers.parse_nodes(ask_controller(context, ["scontrol", "--oneliner", "show", "node"]))


def tasks_on(context: Context, *, hosts: Iterable[str]) -> list[tuple[str, str, str, str]]:
    """Return (job, task, nodes, comment) of jobs and tasks that have some of these hosts."""
    return [(job, task, nodes, comment) for job, task, nodes, comment, _ in _queue(context, hosts=hosts)]


def _queue(context: Context, *, hosts: Iterable[str]) -> list[list[str]]:
    argv = [*_SQUEUE, f"--nodelist={','.join(sorted(hosts))}"]
    lines = (line.split("|", 4) for line in ask_controller(context, argv).splitlines())
    return [fields for fields in lines if len(fields) == 5]


def _jobs(context: Context, *, hosts: frozenset[str]) -> tuple[JobFacts, ...]:
    if not hosts:
        return ()
    queued = [
        (job, name, comment, _hosts(context, nodes)) for job, _, nodes, comment, name in _queue(context, hosts=hosts)
    ]
    tasks = [
        (job, name, host, min(elastic_nodes(comment), default=0), len(held))
        for job, name, comment, held in queued
        for host in held
    ]
    busy = sorted({host for _, _, host, *_ in tasks} & hosts)
    return jobs_of(tasks, {host: launchers_on(context, host) for host in busy})


def _hosts(context: Context, nodes: str) -> list[str]:
    if re.fullmatch(r"[\w.-]+", nodes):
        return [nodes]
    return ask_controller(context, ["scontrol", "show", "hostnames", nodes]).split()


def launchers_on(context: Context, host: str) -> list[dict[str, Any]]:
    """Return launchers by the agent of a node; none where no agent answers."""
    answer = run(context, node=host, argv=["holdfast-agent", "status", "--json"])
    try:
        found: list[dict[str, Any]] = json.loads(answer.stdout)["launchers"]
    except (ValueError, KeyError, TypeError):
        return []
    return found


def _idle(context: Context, *, hosts: frozenset[str]) -> frozenset[str]:
    return frozenset(node.name for node in slurm_nodes(context) if node.name in hosts and node.usable and node.free)


def _group(described: dict[str, Any]) -> GroupFacts:
    image = described.get("CurrentImageId", "")
    custom = image if image != "default" else ""
    return GroupFacts(
        name=described["InstanceGroupName"],
        node_type=described.get("SlurmConfig", {}).get("NodeType", ""),
        image=custom or described.get("CurrentImageReleaseVersion", ""),
        version_status=described.get("ImageVersionStatus", ""),
        custom_image=bool(custom),
    )
