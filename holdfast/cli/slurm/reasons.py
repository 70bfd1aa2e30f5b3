"""
Reasons of Slurm for pending jobs, in words with a remedy. Pure.

Sources: squeue(1), "JOB REASON CODES"; slurm_job_reason_string() of Slurm 22.05 to 25.11.
"""

import re

_WORDS = {
    "AssocGrpGRES": "the account's limit of GPUs is reached",
    "BadConstraints": "no node meets its constraints; see on a node: sinfo -o '%N %f'",
    "BeginTime": "its start time is in the future",
    "Cleaning": "its previous attempt is still being cleaned up",
    "Dependency": "the job that it depends on has not ended",
    "DependencyNeverSatisfied": "the job that it depends on failed, so it never starts",
    "InvalidAccount": "its account does not exist",
    "InvalidQOS": "its QOS does not exist",
    "JobArrayTaskLimit": "its array runs the maximum number of tasks",
    "JobHeldAdmin": "an administrator holds it; release it on a node with: scontrol release JOB",
    "JobHeldUser": "it is held; release it on a node with: scontrol release JOB",
    "JobLaunchFailure": "it could not be launched on its nodes",
    "Licenses": "a requested license is in use",
    "MaxMemPerLimit": "it requests more memory than the partition allows",
    "NodeDown": "a node that it needs is down",
    "None": "",
    "PartitionConfig": "it requests more than the nodes of its partition have; see on a node: sinfo -Nel",
    "PartitionDown": "the partition is down; on a node: scontrol update partitionname=PARTITION state=up",
    "PartitionInactive": "the partition is inactive",
    "PartitionNodeLimit": "it requests more nodes than its partition has up; NODES",
    "PartitionTimeLimit": "it requests more time than the partition allows; see on a node: sinfo -o '%P %l'",
    "Priority": "jobs of a higher priority wait for the same nodes",
    "Prolog": "the prolog of its nodes is running",
    "QOSMaxGRESPerUser": "the user's limit of GPUs is reached",
    "ReqNodeNotAvail": "a requested node is down, drained or reserved; NODES",
    "Reservation": "its reservation has not started",
    "ReservationDeleted": "its reservation was deleted",
    "Resources": "the nodes that it needs are in use",
    "launch failed requeued held": "it could not be launched and is held; on a node: scontrol release JOB",
}
_DRAINED = "nodes required for job are down, drained or reserved"


def waits(reason: str, *, job: str, down: str = "see: holdfast status") -> str:
    """
    Reason of a pending job in words, with Slurm's own name in brackets.

    Args:
        down: Nodes that take no job, as text.
    """
    name, _, rest = reason.strip().strip("()").partition(",")
    key = name.replace("_", " ") if name.replace("_", " ") in _WORDS else name
    words = _WORDS.get(key)
    if words is None and reason.strip("( ").lower().startswith(_DRAINED):
        words = "required nodes are down, drained or reserved; NODES"
    if words is None:
        words = _of_a_limit(name)
    if not words:
        return f"waits: {reason}" if reason.strip() not in ("", "None") else ""
    nodes = re.search(r"UnavailableNodes:\s*(\S+?)\)?$", rest)
    unavailable = f" (unavailable: {nodes[1]})" if nodes else ""
    return f"waits: {words.replace('JOB', job).replace('NODES', down)}{unavailable} ({name})"


def _of_a_limit(name: str) -> str:
    if name.startswith("QOS"):
        return "a limit of its QOS is reached; see on a node: sacctmgr show qos"
    if name.startswith("Assoc"):
        return "a limit of its account or user is reached; see on a node: sacctmgr show assoc"
    return ""


_DRAIN_WORDS = (
    ("Action:Replace", "HyperPod was asked to replace it"),
    ("Action:Reboot", "HyperPod was asked to reboot it"),
    ("Not responding", "its slurmd does not answer"),
    ("Node unexpectedly rebooted", "it rebooted by itself"),
    ("Low RealMemory", "it has less memory than slurm.conf states"),
    ("Low TmpDisk", "it has less disk than slurm.conf states"),
    ("Low socket", "it has fewer CPUs than slurm.conf states"),
    ("gres/gpu count", "it has fewer GPUs than slurm.conf states"),
    ("Kill task failed", "processes of a job could not be ended"),
    ("Prolog error", "its prolog failed"),
    ("Epilog error", "its epilog failed"),
    ("batch job complete failure", "slurmd could not end a batch job"),
    ("reboot", "a reboot was requested"),
)
"""Beginnings of reasons by slurmctld and HyperPod (Slurm, src/slurmctld/node_mgr.c, ``validate_node_specs``)."""


def drained_words(reason: str) -> str:
    """Reason of a drained node in words, with Slurm's own text in brackets."""
    words = next((words for name, words in _DRAIN_WORDS if reason.lower().startswith(name.lower())), "")
    return f"{words} ({reason})" if words else reason
