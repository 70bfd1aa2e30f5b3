"""An upgrade, group by group: jobs leave, HyperPod updates, nodes are resumed."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.cli.deployed import AwsError, Context, controller_hostname, describe_cluster, hostname_of, run
from holdfast.cli.terminal import CommandError, Step, step
from holdfast.cli.upgrading.gathering import ask_controller, launchers_on, slurm_nodes, tasks_on
from holdfast.cli.upgrading.plan import COMPUTE, RUNNING, GroupPlan, Request
from holdfast.cli.upgrading.words import GroupEnd
from holdfast_common import elastic_nodes

REASON = "holdfast upgrade"
"""Of drained nodes in Slurm; only those are resumed."""
LEAVE_S = 300.0
"""For the jobs of one node: a spare may have to start first."""
FREE_S = 120.0
GROUP_S = 4 * 3600.0
ENDED = ("Succeeded", "Failed", "RollbackComplete")
POLL_S = {"embedded": 1.0, "aws": 15.0}


class _StoppedError(Exception):
    def __init__(self, end: GroupEnd) -> None:
        super().__init__(end.message)
        self.end = end


def upgrade_groups(context: Context, plans: Sequence[GroupPlan], request: Request) -> list[GroupEnd]:
    """Upgrade the groups one after the other; stop at the first that is not upgraded."""
    ends: list[GroupEnd] = []
    for plan in plans:
        stopped = any(not one.is_upgraded for one in ends)
        ends.append(
            GroupEnd(name=plan.group.name, nodes=len(plan.nodes)) if stopped else _upgrade(context, plan, request)
        )
    return ends


def _upgrade(context: Context, plan: GroupPlan, request: Request) -> GroupEnd:
    name, hosts = plan.group.name, [node.host for node in plan.nodes]
    is_drained = plan.group.node_type == COMPUTE and "" not in plan.stays
    try:
        with step(f"upgrade {name}") as progress:
            try:
                if is_drained:
                    _drain(context, hosts)
                    if why := _vacate(context, plan, progress):
                        raise _StoppedError(GroupEnd(name=name, nodes=len(hosts), message=why))
                return _updated(context, plan, request, progress)
            finally:
                if is_drained:
                    _resume(context, hosts)
    except _StoppedError as stopped:
        return stopped.end


def _updated(context: Context, plan: GroupPlan, request: Request, progress: Step) -> GroupEnd:
    """Call UpdateClusterSoftware and wait for its end. Raises: _StoppedError: the group is not upgraded."""
    name, count = plan.group.name, len(plan.nodes)
    try:
        context.ask("sagemaker", "UpdateClusterSoftware", **_parameters(context, plan, request))
    except AwsError as error:
        raise _StoppedError(GroupEnd(name=name, nodes=count, message=f"AWS refused: {error}")) from None
    end = _until_ended(context, plan, progress)
    progress.update(end.status)
    if not end.is_upgraded:
        raise _StoppedError(end)
    return end


def _parameters(context: Context, plan: GroupPlan, request: Request) -> dict[str, Any]:
    release = {"ImageReleaseVersion": request.release} if request.release else {}
    size = {"Type": "INSTANCE_COUNT", "Value": plan.at_a_time}
    policy = {"RollingUpdatePolicy": {"MaximumBatchSize": size}, "WaitIntervalInSeconds": plan.wait_s}
    batches = {"DeploymentConfig": policy}
    return {
        "ClusterName": context.session.cluster_name,
        "InstanceGroups": [{"InstanceGroupName": plan.group.name, **release}],
        **({"ImageId": request.image_id} if request.image_id else {}),
        **(batches if context.orchestrator == "eks" else {}),
    }


def _until_ended(context: Context, plan: GroupPlan, progress: Step) -> GroupEnd:
    name, count, until = plan.group.name, len(plan.nodes), time.monotonic() + GROUP_S
    while True:
        cluster, nodes = describe_cluster(context)
        mine = [one for one in nodes if one["InstanceGroupName"] == name]
        group: dict[str, Any] = next(
            (one for one in cluster.get("InstanceGroups", []) if one["InstanceGroupName"] == name), {}
        )
        status = str(group.get("SoftwareUpdateStatus", "InProgress"))
        bad = tuple(
            (hostname_of(one) or one["InstanceId"], one["InstanceStatus"]["Status"])
            for one in mine
            if one["InstanceStatus"]["Status"] != RUNNING
        )
        is_over = status in ENDED and cluster.get("ClusterStatus") == "InService"
        if is_over or time.monotonic() >= until:
            message = str(cluster.get("FailureMessage", "")) or ("" if is_over else f"not over after {GROUP_S:g} s")
            return GroupEnd(name=name, status=status, nodes=count, bad=bad, message=message)
        progress.update(f"{status}, {len(bad)} of {count} nodes not in service")
        time.sleep(POLL_S[context.session.cloud])


# --- Slurm


def _drain(context: Context, hosts: Iterable[str]) -> None:
    ask_controller(context, ["scontrol", "update", f"NodeName={','.join(hosts)}", "State=DRAIN", f"Reason={REASON}"])


def _resume(context: Context, hosts: Sequence[str]) -> None:
    """Resume the nodes that were drained here; a node that is not in service keeps its state."""
    try:
        found = {node.name: node for node in slurm_nodes(context)}
        ours = [name for name in hosts if name in found and found[name].given_reason == REASON]
        if ours:
            ask_controller(context, ["scontrol", "update", f"NodeName={','.join(ours)}", "State=RESUME"])
    except CommandError as error:
        raise CommandError(
            f"{error}; the nodes {', '.join(hosts)} stay drained; resume them with: "
            f"scontrol update NodeName={','.join(hosts)} State=RESUME",
            exit_code=1,
        ) from None


def _vacate(context: Context, plan: GroupPlan, progress: Step) -> str:
    """Let jobs leave node by node, except those whose loss was accepted; return why one stays, or nothing."""
    for host in _spares_first(context, [node.host for node in plan.nodes]):
        tasks = [one for one in tasks_on(context, hosts=[host]) if one[0] not in plan.stays]
        if not tasks:
            continue
        progress.update(f"jobs leave {host}")
        elastic = [task for _, task, _, comment in tasks if elastic_nodes(comment)]
        for task in elastic:
            ask_controller(context, ["scancel", "--batch", "--signal=TERM", task])
        why = _leave(context, host) if len(elastic) < len(tasks) else {}
        if staying := [f"job {job}: {reason}" for job, reason in why.items() if job not in plan.stays]:
            return f"{host}: {'; '.join(staying)}; nothing of this group was updated"
        if not _is_free(context, host, plan):
            return f"{host}: jobs did not end within {FREE_S:g} s; nothing of this group was updated"
        _requeue(context, [task for _, task, _, _ in tasks])
    return ""


def _spares_first(context: Context, hosts: Sequence[str]) -> list[str]:
    """So that no rank goes to a spare that leaves next."""

    return sorted(hosts, key=lambda host: sum(int(one["ranks"]) for one in launchers_on(context, host)))


def _leave(context: Context, host: str) -> dict[str, str]:
    """Have the agent of a node hand its ranks over; return jobs that stay, with the reason."""
    argv = ["holdfast-agent", "leave", "--within", f"{LEAVE_S:g}", "--reason", REASON]
    answer = run(context, node=host, argv=argv, timeout_s=LEAVE_S + 30.0)
    try:
        found: dict[str, str] = json.loads(answer.stdout)["stay"]
    except (ValueError, KeyError):
        raise CommandError(f"{host}: holdfast-agent leave failed: {answer.stderr.strip()}", exit_code=1) from None
    return found


def _is_free(context: Context, host: str, plan: GroupPlan) -> bool:
    until = time.monotonic() + FREE_S
    while any(job not in plan.stays for job, *_ in tasks_on(context, hosts=[host])):
        if time.monotonic() >= until:
            return False
        time.sleep(0.5)
    return True


def _requeue(context: Context, tasks: Sequence[str]) -> None:
    """Requeue tasks that ended: a job file may do it itself, and then its task waits or runs elsewhere."""
    for task in tasks:
        try:
            state = ask_controller(context, ["squeue", "--noheader", "--array", f"--jobs={task}", "--format=%T"])
        except CommandError:
            state = ""
        if not state.strip():
            run(context, node=controller_hostname(context), argv=["scontrol", "requeue", task])
