"""Status of a deployment, from AWS APIs, Slurm or Kubernetes, and the local cloud's processes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.cli.deployed.aws import AwsError, UnreachableError
from holdfast.cli.deployed.cluster import (
    associations_of,
    controller_hostname,
    describe_cluster,
    describe_stack,
    hostname_of,
)
from holdfast.cli.deployed.events import read_events
from holdfast.cli.deployed.finished_jobs import JobRow, ended_jobs
from holdfast.cli.deployed.kubernetes import known_workloads, sign_in, workload_rows
from holdfast.cli.deployed.nodes import run
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.kubernetes import PodRecord, Workload, readiness
from holdfast.cli.slurm import training_of, waits
from holdfast.cli.terminal import CommandError
from holdfast_common import KubernetesError, slurm_answers

if TYPE_CHECKING:
    from holdfast.localcloud.processes import ProcessState
    from holdfast_common import Event

T = TypeVar("T")

NODE_PREFIX = "hyperpod-"
"""Of the name of an instance's Node."""
INCIDENTS_OF_S = 7 * 86_400
STAND_IN_TAG = "holdfast:stand-in:"
_SLURM_S = {"embedded": 5.0, "aws": 20.0}
_TAKES_NO_JOB = ("down", "drain", "fail", "maint", "reserved")
"""Beginnings of Slurm's node states (sinfo(1), NODE STATE CODES)."""


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """Instance; ``slurm`` is empty for nodes that Slurm does not schedule, ``kubernetes`` before a node joins."""

    instance_id: str
    instance_group: str
    instance_type: str
    hostname: str
    address: str
    status: str
    slurm: str
    message: str
    drained: str = ""
    """Why Slurm gives it no job, and the command that gives it jobs again."""
    kubernetes: str = ""
    """As kubectl shows it: Ready, NotReady, with SchedulingDisabled."""


@dataclass(frozen=True, kw_only=True)
class JobView:
    job_id: str
    name: str
    state: str
    nodes: str
    elapsed: str
    reason: str
    training: str = ""
    """Step and loss that its events tell, and what of it does not come back."""


@dataclass(frozen=True, kw_only=True)
class FileSystemView:
    """The Lustre file system and the S3 paths its directories are linked to."""

    file_system_id: str
    status: str
    capacity_gib: int
    data_repositories: dict[str, str]
    directions: dict[str, str] = field(default_factory=dict)
    """Of each directory: <- from S3, -> to S3, <-> both, -- neither."""
    goes_with_stack: bool = False
    """Whether deleting its stack deletes it."""


@dataclass(frozen=True, kw_only=True)
class IncidentView:
    """Open incident, in short; in full: ``holdfast incidents ID``."""

    id: str
    node: str
    host: str
    fault: str
    state: str


@dataclass(frozen=True, kw_only=True)
class DetectorView:
    node: str
    host: str
    detector: str
    part: str
    evidence: str


@dataclass(frozen=True, kw_only=True)
class StatusView:
    environment: str
    cloud: str
    endpoint: str
    problem: str
    """Problem that the embedded AWS reports, such as a full disk; empty without one."""
    stack_name: str
    stack_status: str
    stack_outputs: dict[str, str]
    cluster_name: str
    cluster_status: str
    cluster_message: str
    orchestrator: str
    """Either slurm or eks."""
    kubernetes: str = field(default="")
    """The version of Kubernetes that EKS records, and the one that runs; empty under Slurm."""
    nodes: list[NodeView]
    jobs: list[JobView]
    file_system: FileSystemView | None
    stand_ins: dict[str, str]
    ended: list[JobRow] = field(default_factory=list)
    """Jobs of the last day that are over, failed ones first."""
    pods: list[PodRecord] = field(default_factory=list)
    """Of jobs that go on."""
    unseen: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""
    processes: "list[ProcessState]" = field(default_factory=list)
    """Of the local cloud."""
    incidents: list[IncidentView] = field(default_factory=list)
    """Those of the last week that are open."""
    lost_detectors: list[DetectorView] = field(default_factory=list)
    """What health agents cannot see any more, of the last week."""
    planted: list[str] = field(default_factory=list)
    """Faults that last, each with its node: `holdfast inject --list` has the rest."""


def read_status(context: Context) -> StatusView:
    """Read the status, and list what is unreadable. Raises: CommandError: no such cluster, and nothing else to show."""
    session = context.session
    unseen: list[str] = []
    stack: dict[str, Any] = _seen(lambda: describe_stack(context), what="the stack", otherwise={}, unseen=unseen)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    cluster, nodes = describe_cluster(context)
    if not cluster and not session.stack_name:
        raise CommandError(f"there is no cluster {session.cluster_name} in {session.region}")
    orchestrator = "eks" if "Eks" in cluster.get("Orchestrator", {}) else "slurm"
    is_eks = orchestrator == "eks"
    slurm = _SlurmView() if is_eks else _read_slurm(context, nodes, unseen=unseen)
    kubernetes = _read_kubernetes(context, unseen=unseen) if is_eks else _Kubernetes()
    events: list[Event] = _seen(lambda: _events(context), what="events", otherwise=[], unseen=unseen)
    if not session.stack_name:
        unseen.append("stack, file system and incidents: without --environment")
    return StatusView(
        environment=session.environment,
        cloud=session.cloud,
        endpoint=context.local.endpoint if session.cloud == "embedded" else f"sagemaker.{session.region}",
        problem=_problem(context),
        stack_name=session.stack_name,
        stack_status=stack.get("StackStatus", ""),
        stack_outputs=outputs,
        cluster_name=session.cluster_name,
        cluster_status=cluster.get("ClusterStatus", "absent"),
        cluster_message=cluster.get("FailureMessage", ""),
        orchestrator=orchestrator,
        kubernetes=kubernetes.version,
        nodes=[_node_view(node, slurm, kubernetes.nodes) for node in nodes],
        pods=kubernetes.pods,
        jobs=with_training(slurm.jobs or kubernetes.jobs, events),
        ended=slurm.ended or kubernetes.ended,
        file_system=_seen(
            lambda: _file_system(context, outputs), what="the file system", otherwise=None, unseen=unseen
        ),
        stand_ins=_seen(lambda: _stand_ins(context, cluster), what="tags", otherwise={}, unseen=unseen),
        unseen=unseen,
        processes=context.local.processes() if session.cloud == "embedded" else [],
        incidents=open_incidents(events),
        lost_detectors=lost_on(nodes, events),
        planted=_planted(context),
    )


def _events(context: Context) -> "list[Event]":
    if not context.session.stack_name:
        return []
    try:
        return read_events(context, since_ns=time.time_ns() - INCIDENTS_OF_S * 1_000_000_000)
    except AwsError as error:
        if error.code == "ResourceNotFoundException":
            return []  # a cluster that writes no events
        raise


def open_incidents(events: "list[Event]") -> list[IncidentView]:
    from holdfast_common import timeline

    return [
        IncidentView(id=one.id, node=one.node, host=one.host, fault=one.fault, state=one.state.value)
        for one in timeline(events).incidents
        if one.is_open
    ]


def lost_on(nodes: list[dict[str, Any]], events: "list[Event]") -> list[DetectorView]:
    from holdfast_common import in_order, lost_detectors

    hosts = {node["InstanceId"]: hostname_of(node) for node in nodes}
    return [
        DetectorView(node=one.node, host=hosts[one.node], detector=one.detector, part=one.part, evidence=one.evidence)
        for one in lost_detectors(in_order(events))
        if one.node in hosts
    ]


def with_training(jobs: list[JobView], events: "list[Event]") -> list[JobView]:
    """Add training progress from events; running jobs first."""
    shown = [replace(job, training=training_of(job.job_id, events) if job.state == "RUNNING" else "") for job in jobs]
    return sorted(shown, key=lambda job: job.state not in ("RUNNING", "Running"))


def _planted(context: Context) -> list[str]:
    if context.session.cloud != "embedded" or not any((context.local.home / "nodes").glob("*/planted/*.json")):
        return []
    from holdfast.localcloud.nodes import Fleet
    from holdfast.localcloud.planting import planted

    return [f"{one.fault} on {one.instance_id} ({one.host})" for one in planted(Fleet(home=context.local.home))]


def _problem(context: Context) -> str:
    if context.session.cloud != "embedded":
        return ""
    health = context.local.health()
    own = "the embedded AWS does not answer its health page" if health is None else str(health.get("problem", ""))
    return "\n".join(line for line in (own, *context.local.problems()) if line)


def _seen(ask: Callable[[], T], *, what: str, otherwise: T, unseen: list[str]) -> T:
    try:
        return ask()
    except AwsError as error:
        unseen.append(f"{what}: {error.code}")
        return otherwise


@dataclass(frozen=True, kw_only=True)
class _Kubernetes:
    version: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    """Name of a Node -> how it is."""
    jobs: list[JobView] = field(default_factory=list)
    pods: list[PodRecord] = field(default_factory=list)
    ended: list[JobRow] = field(default_factory=list)


def _read_kubernetes(context: Context, *, unseen: list[str]) -> _Kubernetes:
    try:
        there = sign_in(context)
        nodes = {one["metadata"]["name"]: readiness(one) for one in there.client.items("/api/v1/nodes")}
        found = known_workloads(context)
    except (CommandError, AwsError, KubernetesError) as error:
        unseen.append(f"Kubernetes' nodes and jobs: {error}")
        return _Kubernetes()
    rows = {one.job: row for one, row in zip(found, workload_rows(context, found), strict=True)}
    going_on = [one for one in found if not one.has_ended]
    same = there.runs.startswith(f"{there.cluster.version}.")
    return _Kubernetes(
        version=there.runs if same else f"{there.cluster.version}, and {there.runs} runs",
        nodes=nodes,
        jobs=[_job_view(one, elapsed=rows[one.job].elapsed, hint=rows[one.job].hint) for one in going_on],
        pods=[pod for one in going_on for pod in one.pods],
        ended=[row for one in found if one.has_ended and _is_of_today(one) for row in [rows[one.job]]],
    )


def _is_of_today(one: Workload) -> bool:
    return one.ended_s is None or one.ended_s > time.time() - 86400


def _job_view(one: Workload, *, elapsed: str, hint: str = "") -> JobView:
    running = sum(pod.phase == "Running" for pod in one.pods)
    return JobView(
        job_id=str(one.job),
        name=one.kinds,
        state=one.state,
        nodes=f"{running} of {len(one.pods)} pods run",
        elapsed=elapsed,
        reason=" ".join(filter(None, (one.why, f"({hint})" if hint else ""))),
    )


def _node_view(node: dict[str, Any], slurm: "_SlurmView", kubernetes: dict[str, str]) -> NodeView:
    hostname = hostname_of(node)
    return NodeView(
        instance_id=node["InstanceId"],
        instance_group=node["InstanceGroupName"],
        instance_type=node["InstanceType"],
        hostname=hostname,
        address=hostname.removeprefix("ip-").replace("-", "."),
        status=node["InstanceStatus"]["Status"],
        slurm=slurm.states.get(hostname, ""),
        message=node["InstanceStatus"].get("Message", ""),
        drained=slurm.drained.get(hostname, ""),
        kubernetes=kubernetes.get(f"{NODE_PREFIX}{node['InstanceId']}", ""),
    )


@dataclass(frozen=True, kw_only=True)
class _SlurmView:
    states: dict[str, str] = field(default_factory=dict)
    """Host name -> state."""
    drained: dict[str, str] = field(default_factory=dict)
    """Host name of a node that takes no job -> why, and what to do."""
    jobs: list[JobView] = field(default_factory=list)
    ended: list[JobRow] = field(default_factory=list)


def _read_slurm(context: Context, nodes: list[dict[str, Any]], *, unseen: list[str]) -> "_SlurmView":
    if not nodes:
        return _SlurmView()
    # The name comes last: whoever submits a job chooses it, and may put anything into it.
    script = "sinfo -h -N -o 'N|%N|%T|%E' && squeue -h -o 'J|%i|%T|%N|%M|%r|%j'"
    try:
        controller, timeout_s = controller_hostname(context), _SLURM_S[context.session.cloud]
        answer = run(context, node=controller, argv=["/bin/sh", "-c", script], timeout_s=timeout_s)
    except CommandError as error:
        unseen.append(f"Slurm's nodes and jobs: {error}")
        return _SlurmView()
    if answer.returncode:
        reason = answer.stderr.strip().rpartition("\n")[2] or f"exit code {answer.returncode}"
        unseen.append(f"Slurm's nodes and jobs: {reason}")
    states, jobs = parse_slurm(answer.stdout)
    drained = parse_drained(answer.stdout, controller=controller)
    try:
        ended = ended_jobs(context)
    except (CommandError, OSError) as error:
        unseen.append(f"finished jobs: {error}")
        ended = []
    return _SlurmView(states=states, drained=drained, jobs=jobs, ended=ended)


def parse_drained(text: str, *, controller: str) -> dict[str, str]:
    """By host name of each drained node: the reason, and the command that resumes it."""
    rows = [line.split("|", 3) for line in text.split("\n") if line.startswith("N|")]
    return {
        row[1]: f"{row[3]}; resume it with: holdfast ssh {controller} -- scontrol update nodename={row[1]} state=resume"
        for row in rows
        # HyperPod replaces or reboots a node with a mark of its own, and resumes it then.
        if len(row) == 4 and row[2].startswith(("drain", "down")) and row[3] not in slurm_answers.MARKS
    }


def parse_slurm(text: str) -> tuple[dict[str, str], list[JobView]]:
    """Node states by host name, and the queue. Torn lines are left out."""
    fields = ("job_id", "state", "nodes", "elapsed", "reason", "name")
    rows = [line.split("|", len(fields)) for line in text.split("\n")]
    states = {row[1]: row[2] for row in rows if row[0] == "N" and len(row) >= 3}
    jobs = [dict(zip(fields, row[1:], strict=True)) for row in rows if row[0] == "J" and len(row) == len(fields) + 1]
    down = ", ".join(
        f"{host} is {state.rstrip('*')}" for host, state in states.items() if state.startswith(_TAKES_NO_JOB)
    )
    return states, [JobView(**{**job, "reason": _in_words(job, down=down or "no node is")}) for job in jobs]


def _in_words(job: dict[str, str], *, down: str) -> str:
    if job["state"] not in slurm_answers.BEFORE_START:
        return job["reason"]
    return waits(job["reason"], job=job["job_id"], down=down).removeprefix("waits: ")


def _file_system(context: Context, outputs: dict[str, str]) -> FileSystemView | None:
    file_system_id = outputs.get("FileSystemId")
    if file_system_id is None:
        return None
    described = context.ask("fsx", "DescribeFileSystems", FileSystemIds=[file_system_id])["FileSystems"][0]
    links = [*associations_of(context, file_system_id)]
    return FileSystemView(
        file_system_id=file_system_id,
        status=described["Lifecycle"],
        capacity_gib=described["StorageCapacity"],
        data_repositories={link["FileSystemPath"]: link["DataRepositoryPath"] for link in links},
        directions={link["FileSystemPath"]: direction(link) for link in links},
        goes_with_stack=_goes_with_stack(context),
    )


def direction(link: dict[str, Any]) -> str:
    """Copy direction of an association (FSx API, S3DataRepositoryConfiguration)."""
    s3 = link.get("S3", {})
    comes, goes = (bool(s3.get(name, {}).get("Events")) for name in ("AutoImportPolicy", "AutoExportPolicy"))
    return {(True, True): "<->", (True, False): "<-", (False, True): "->", (False, False): "--"}[comes, goes]


def _goes_with_stack(context: Context) -> bool:
    """Return True if the DeletionPolicy deletes the file system; False if the template is unreadable."""
    try:
        resources = context.template()["Resources"].values()
    except (AwsError, UnreachableError, ValueError, KeyError):
        return False
    kind = "AWS::FSx::FileSystem"
    return any(one.get("DeletionPolicy", "Delete") == "Delete" for one in resources if one.get("Type") == kind)


def _stand_ins(context: Context, cluster: dict[str, Any]) -> dict[str, str]:
    if not cluster:
        return {}
    tags = context.ask("sagemaker", "ListTags", ResourceArn=cluster["ClusterArn"])["Tags"]
    return {tag["Key"].removeprefix(STAND_IN_TAG): tag["Value"] for tag in tags if tag["Key"].startswith(STAND_IN_TAG)}
