"""
Plan of an upgrade: which groups, in which order, and what their jobs lose. Pure.

Sources: SageMaker developer guide, "Update the SageMaker HyperPod platform software of a cluster" (the root volume is
replaced; pods are not drained) and "Update your AMI version" (batches with Amazon EKS only, so that under Slurm all
nodes of a group are updated at once).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

CONTROLLER, COMPUTE = "Controller", "Compute"
RUNNING = "Running"
WAIT_S = 300
"""For a pod on an updated node, until it is a spare: its image is pulled, its processes start."""
RELEASE = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}")


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    instance_id: str
    host: str
    group: str
    status: str = RUNNING


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """Instance group; ``image`` is that of DescribeCluster: a release, an AMI, or empty."""

    name: str
    node_type: str = ""
    image: str = ""
    version_status: str = ""
    custom_image: bool = False


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """
    A job of Slurm on compute nodes, or of Kubernetes.

    Args:
        ranks: Hosts with ranks, or with any task where no launcher reports. With EKS hosts of pods, spares too.
        spares: Hosts with a launcher that waits for ranks.
        spare_count: Spare nodes, with EKS, where ranks and spares change places.
        least: Fewest nodes of an elastic job; 0: its size is fixed.
        launched: It runs under holdfast-run on all of its hosts; with EKS: as a HoldfastJob.
        allocated: Hosts that one allocation holds together with others.
    """

    job: str
    name: str = ""
    ranks: frozenset[str] = frozenset()
    spares: frozenset[str] = frozenset()
    spare_count: int = 0
    least: int = 0
    launched: bool = True
    allocated: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Situation:
    """
    Args:
        idle: Compute hosts that Slurm would use and that have no job.
        unknown: Reason why jobs are unknown; empty: they are known.
    """

    orchestrator: Literal["slurm", "eks"]
    groups: tuple[GroupFacts, ...]
    nodes: tuple[NodeFacts, ...]
    jobs: tuple[JobFacts, ...] = ()
    idle: frozenset[str] = frozenset()
    unknown: str = ""

    def of(self, group: str) -> tuple[NodeFacts, ...]:
        return tuple(node for node in self.nodes if node.group == group)


@dataclass(frozen=True, kw_only=True)
class Request:
    groups: tuple[str, ...] = ()
    release: str = ""
    image_id: str = ""
    batch: int = 0
    """Nodes at a time, with EKS; 0: one."""
    wait_s: int | None = None
    """Time between two batches, with EKS. Default: WAIT_S if a job has to be whole again, else none"""


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """
    Args:
        skipped: Reason why the group stays as it is; empty: it is upgraded.
        at_a_time: Nodes that are updated together.
        wait_s: Time between two batches.
        leave: Effects on jobs that lose nothing.
        lost: Effects on jobs that lose something.
    """

    group: GroupFacts
    nodes: tuple[NodeFacts, ...] = ()
    skipped: str = ""
    at_a_time: int = 0
    wait_s: int = 0
    leave: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    stays: frozenset[str] = field(default_factory=frozenset)
    """Jobs that lose something."""


def problems_of(situation: Situation, request: Request) -> list[str]:
    """Return reasons why the upgrade is refused, in the form of messages."""
    known = [group.name for group in situation.groups]
    found = [
        f"got --group {name}; allowed: {', '.join(known)}"
        for name in dict.fromkeys(request.groups)
        if name not in known
    ]
    if request.release and not RELEASE.fullmatch(request.release):
        found.append(f"got --release {request.release}; allowed: a release of HyperPod's AMI such as 1.2.3")
    if request.release and request.image_id:
        found.append("got --release and --image; allowed: one of them")
    is_given = {"--batch": request.batch > 0, "--wait": request.wait_s is not None}
    if situation.orchestrator == "slurm" and (given := [name for name in is_given if is_given[name]]):
        found.append(f"got {' and '.join(given)}; allowed: with EKS only, Slurm's groups are updated at once")
    found += [
        f"group {group.name} has the AMI {group.image}; add --image AMI, or --image default"
        for group in situation.groups
        if group.name in request.groups and group.custom_image and not (request.image_id or request.release)
    ]
    chosen = {one.group.name for one in plan_of(situation, request) if not one.skipped}
    bad = [node for node in situation.nodes if node.group in chosen and node.status != RUNNING]
    found += [
        f"node {node.host or node.instance_id} ({node.instance_id}) of group {node.group} is {node.status}; "
        "allowed: Running; wait for it, or replace it, then run the command again"
        for node in bad
    ]
    return found


def plan_of(situation: Situation, request: Request) -> tuple[GroupPlan, ...]:
    """Return a plan for each group, compute groups first."""
    ordered = sorted(situation.groups, key=lambda group: group.node_type not in ("", COMPUTE))
    return tuple(_plan(situation, request, group) for group in ordered)


def _plan(situation: Situation, request: Request, group: GroupFacts) -> GroupPlan:
    nodes = situation.of(group.name)
    if skipped := _skipped(group, nodes, request):
        return GroupPlan(group=group, nodes=nodes, skipped=skipped)
    if situation.orchestrator == "eks":
        return _in_batches(situation, request, group)
    if group.node_type == CONTROLLER:
        lost = (
            "Slurm's commands fail until it is back; the queue is lost unless its state is on a shared file system",
        )
        return GroupPlan(group=group, nodes=nodes, at_a_time=len(nodes), lost=lost)
    hosts = frozenset(node.host for node in nodes)
    leave, lost_by = _effects(situation, hosts)
    if situation.unknown and group.node_type == COMPUTE:
        lost_by = {"": f"all jobs on these nodes: not checked: {situation.unknown}"}
    return GroupPlan(
        group=group,
        nodes=nodes,
        at_a_time=len(nodes),
        leave=tuple(leave),
        lost=tuple(lost_by.values()),
        stays=frozenset(lost_by),
    )


def _in_batches(situation: Situation, request: Request, group: GroupFacts) -> GroupPlan:
    """HyperPod chooses the nodes of a batch and does not drain them, so that their ranks are lost and recovered."""
    nodes = situation.of(group.name)
    size, hosts = min(request.batch or 1, len(nodes)), frozenset(node.host for node in nodes)
    leave, lost = [], []
    for job in situation.jobs:
        if not job.ranks & hosts:
            continue
        named = f"job {job.job}"
        if not job.launched:
            lost.append(f"{named}: its pods end with their nodes: it is no HoldfastJob")
        elif job.spare_count >= size:
            leave.append(f"{named}: spares take over from each batch")
        elif job.least and len(job.ranks) - size >= job.least:
            leave.append(f"{named}: shrinks with each batch, and grows back")
        else:
            few = f"has {job.spare_count} of the {_nodes(size)} that a batch takes as spares"
            lost.append(f"{named}: {few}: it waits for its nodes, or stops")
    lost.append(f"other pods on {size} of {len(nodes)} nodes at a time: HyperPod does not drain them")
    if situation.unknown:
        lost.append(f"jobs: not checked: {situation.unknown}")
    wait_s = request.wait_s if request.wait_s is not None else WAIT_S if leave else 0
    return GroupPlan(group=group, nodes=nodes, at_a_time=size, wait_s=wait_s, leave=tuple(leave), lost=tuple(lost))


def _skipped(group: GroupFacts, nodes: Sequence[NodeFacts], request: Request) -> str:
    if request.groups and group.name not in request.groups:
        return "not named"
    if not request.groups and group.node_type == CONTROLLER:
        return "upgraded only with --group"
    if not nodes:
        return "no nodes"
    if target := request.release or request.image_id:
        return f"has {target}" if target == group.image else ""
    if not request.groups and group.custom_image:
        return f"has the AMI {group.image}: only with --image"
    return "up to date" if group.version_status == "UpToDate" else ""


def _effects(situation: Situation, hosts: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """Return effects without a loss, and job -> its loss."""
    leave: list[str] = []
    lost: dict[str, str] = {}
    idle = len(situation.idle - hosts)
    for job in situation.jobs:
        here = job.ranks & hosts
        if not here and not job.spares & hosts:
            continue
        named = f"job {job.job}{f' ({job.name})' if job.name else ''}"
        if not job.launched:
            lost[job.job] = f"{named}: ends with its {_nodes(len(here))}: it does not run under holdfast-run"
            continue
        if held := job.allocated & hosts:
            lost[job.job] = (
                f"{named}: one allocation keeps {_nodes(len(held))} of it here until it ends: with --no-kill it goes "
                "on without them, as after their loss; a job array can leave"
            )
            continue
        if not here:
            leave.append(f"{named}: its spare moves")
            continue
        if job.least:
            left = len(job.ranks - hosts)
            if left >= job.least:
                leave.append(f"{named}: shrinks from {len(job.ranks)} to {_nodes(left)}, and grows back")
            else:
                lost[job.job] = f"{named}: ends: {_nodes(left)} would be left, and it needs {job.least}"
            continue
        spares = len(job.spares - hosts)
        room = spares + idle if job.spares else 0
        if room >= len(here):
            leave.append(f"{named}: hands the ranks of {_nodes(len(here))} over")
            idle -= max(0, len(here) - spares)
        else:
            lost[job.job] = (
                f"{named}: has ranks on {_nodes(len(here))} here and room on {room} elsewhere: it stops, and repeats "
                "the steps since its last checkpoint"
            )
    return leave, lost


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def jobs_of(
    tasks: Iterable[tuple[str, str, str, int, int]], launchers: Mapping[str, Sequence[Mapping[str, object]]]
) -> tuple[JobFacts, ...]:
    """
    Return jobs from Slurm's tasks and host -> launchers as the agents report them.

    Args:
        tasks: (job, name, host, fewest nodes, nodes of its allocation).
    """
    hosts: dict[str, set[str]] = {}
    about: dict[str, tuple[str, int]] = {}
    shared: dict[str, set[str]] = {}
    for job, name, host, least, size in tasks:
        hosts.setdefault(job, set()).add(host)
        if size > 1:
            shared.setdefault(job, set()).add(host)
        about[job] = (name, least)
    found = []
    for job, on in hosts.items():
        reports = {host: [one for one in launchers.get(host, ()) if one["job"] == job] for host in on}
        launched = all(reports.values())
        spares = {host for host in on if reports[host] and not any(one["ranks"] for one in reports[host])}
        name, least = about[job]
        found.append(
            JobFacts(
                job=job,
                name=name,
                ranks=frozenset(on - spares),
                spares=frozenset(spares),
                least=least,
                launched=launched,
                allocated=frozenset(shared.get(job, ())),
            )
        )
    return tuple(found)
