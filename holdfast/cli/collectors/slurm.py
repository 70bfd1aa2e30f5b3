"""Job, its nodes and its competitors, as Slurm's controller reports them."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.deployed import Context, controller_hostname, parse_scontrol, run
from holdfast.cli.diagnosis import DrainedNode, Holder, PendingJob
from holdfast.cli.slurm import drained_words, waits
from holdfast_common import slurm_answers

_READ = """scontrol --oneliner show job "$1"
echo ===nodes
scontrol --oneliner show node
echo ===hosts
hosts=$(squeue --noheader --array --states=running,suspended --jobs "$1" --format %N 2>/dev/null | paste -s -d , -)
[ -z "$hosts" ] || scontrol show hostnames "$hosts"
echo ===files
scontrol show job "$1"
echo ===queue
squeue --noheader --states=running --format '%A|%D|%P|%e'
"""
_TAKES_NO_JOB = {"DOWN", "DRAIN", "FAIL", "MAINTENANCE", "RESERVED", "NOT_RESPONDING", "REBOOT_ISSUED"}
_PARTITIONS = re.compile(r"(?:^| )NodeName=(\S+).* Partitions=(\S+)")
MOST_HOLDERS = 4


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """
    One job of the controller.

    Args:
        numbers: Of the job, or of the tasks and parts that run.
        fields: Of ``scontrol show job``, without those that a user may write.
        files: Path and host of its output.
        late: Of the tasks that run, another one that waits; None if all run.
        ends_s: Seconds until its time limit; None if unknown.
    """

    numbers: Sequence[str]
    state: str
    nodes: Sequence[str]
    fields: dict[str, str]
    files: Sequence[tuple[str, str]]
    pending: PendingJob | None
    drained: Sequence[DrainedNode]
    late: PendingJob | None
    ends_s: float | None


def slurm_job(context: Context, *, job: str) -> SlurmJob | None:
    """Return the job; None if the controller has none of this name. Raises: CommandError: it does not answer."""
    controller = controller_hostname(context)
    argv = ["env", "SLURM_TIME_FORMAT=%s", "/bin/sh", "-c", _READ, "read", job]
    answer = run(context, node=controller, argv=argv, timeout_s=8.0)
    return parse_controller(answer.stdout, job=job, now_s=time.time())


def parse_controller(text: str, *, job: str, now_s: float) -> SlurmJob | None:
    """Parse the answer of the script; None without the job."""
    jobs, _, rest = text.partition("===nodes\n")
    nodes, _, rest = rest.partition("===hosts\n")
    hosts, _, rest = rest.partition("===files\n")
    files, _, queue = rest.partition("===queue\n")
    found = [one for one in slurm_answers.parse_jobs(jobs) if "JobState" in one]
    if not found:
        return None
    begun = [one for one in found if one["JobState"] not in slurm_answers.BEFORE_START] or found
    # Tasks of an array may have ended before the others.
    going_on = [one for one in begun if one["JobState"] in slurm_answers.WAITING] or begun
    fields = going_on[0]
    state = fields["JobState"]
    partitions = set(fields.get("Partition", "").split(","))
    of_node = {at[1]: set(at[2].split(",")) for line in nodes.splitlines() if (at := _PARTITIONS.search(line))}
    usable, drained = [], []
    for node in slurm_answers.parse_nodes(nodes):
        if not of_node.get(node.name, partitions) & partitions:
            continue
        if node.flags & _TAKES_NO_JOB or node.base in _TAKES_NO_JOB:
            reason = drained_words(node.reason) if node.reason else ""
            drained.append(DrainedNode(node=node.name, state=node.state.lower(), reason=reason, by=node.reason_by))
        else:
            usable.append(node.name)
    allocated = list(dict.fromkeys(hosts.split()))
    numbers = [one.get("JobId", job) for one in going_on]
    waiting = [
        _pending(one, job=job, own=numbers, usable=len(usable), drained=drained, queue=queue, now_s=now_s)
        for one in found
        if one["JobState"] in slurm_answers.BEFORE_START
    ]
    pending = waiting[0] if state in slurm_answers.BEFORE_START else None
    return SlurmJob(
        numbers=numbers,
        state=state,
        nodes=allocated if pending is None else [],
        fields=fields,
        files=parse_scontrol(files),
        pending=pending,
        drained=[one for one in drained if one.node in allocated],
        late=waiting[0] if waiting and pending is None else None,
        ends_s=_after(fields.get("EndTime", ""), now_s) if pending is None else None,
    )


def _pending(
    fields: dict[str, str],
    *,
    job: str,
    own: Sequence[str],
    usable: int,
    drained: Sequence[DrainedNode],
    queue: str,
    now_s: float,
) -> PendingJob:
    reason = fields.get("Reason", "").replace("_", " ") if "Nodes_required" in fields.get("Reason", "") else fields.get(
        "Reason", ""
    )  # fmt: skip
    down = ", ".join(one.node for one in drained) or "no node is"
    words = waits(reason, job=job, down=down).removeprefix("waits: ") or "it waits, and Slurm gives no reason yet"
    requested = fields.get("NumNodes", "").partition("-")[0]
    name = reason.strip("()").partition(",")[0]
    return PendingJob(
        name=name,
        words=words,
        drained=drained,
        holders=_holders(queue, partitions=fields.get("Partition", "").split(","), now_s=now_s, own=own)
        if name in ("Resources", "Priority") else [],
        usable=usable,
        requested=int(requested) if requested.isdecimal() else None,
        starts_s=_after(fields.get("StartTime", ""), now_s),
    )  # fmt: skip


def _holders(queue: str, *, partitions: Sequence[str], now_s: float, own: Sequence[str]) -> list[Holder]:
    found = []
    for line in queue.splitlines():
        job, _, rest = line.partition("|")
        nodes, _, rest = rest.partition("|")
        partition, _, end = rest.partition("|")
        if partition in partitions and nodes.isdecimal() and job not in own:
            found.append(Holder(job=job, nodes=int(nodes), ends_s=_after(end, now_s)))
    return sorted(found, key=lambda one: -one.nodes)[:MOST_HOLDERS]


def _after(text: str, now_s: float) -> float | None:
    return int(text) - now_s if text.isdecimal() and int(text) > now_s else None
