"""
Reasons of Slurm for pending jobs, in words with a remedy. Pure.

Sources: squeue(1), "JOB REASON CODES"; slurm_job_reason_string() of Slurm 22.05 to 25.11.
"""

import re

_WORDS = {
    "AssocGrpGRES": "the account's limit of GPUs is reached",
    "BadConstraints": "no node meets its constraints; see: sinfo -o '%N %f'",
    "BeginTime": "its start time is in the future",
    "Cleaning": "its previous attempt is still being cleaned up",
    "Dependency": "the job that it depends on has not ended",
    "DependencyNeverSatisfied": "the job that it depends on failed, so it never starts",
    "InvalidAccount": "its account does not exist",
    "InvalidQOS": "its QOS does not exist",
    "JobArrayTaskLimit": "its array runs the maximum number of tasks",
    "JobHeldAdmin": "an administrator holds it; release it with: scontrol release JOB",
    "JobHeldUser": "it is held; release it with: scontrol release JOB",
    "JobLaunchFailure": "it could not be launched on its nodes",
    "Licenses": "a requested license is in use",
    "MaxMemPerLimit": "it requests more memory than the partition allows",
    "NodeDown": "a node that it needs is down",
    "None": "",
    "PartitionConfig": "it requests more than the nodes of its partition have; see: sinfo -Nel",
    "PartitionDown": "the partition is down; bring it up with: scontrol update partitionname=PARTITION state=up",
    "PartitionInactive": "the partition is inactive",
    "PartitionNodeLimit": "it requests more nodes than its partition has up; see: sinfo -R",
    "PartitionTimeLimit": "it requests more time than the partition allows; see: sinfo -o '%P %l'",
    "Priority": "jobs of a higher priority wait for the same nodes",
    "Prolog": "the prolog of its nodes is running",
    "QOSMaxGRESPerUser": "the user's limit of GPUs is reached",
    "ReqNodeNotAvail": "a requested node is down, drained or reserved; see: sinfo -R",
    "Reservation": "its reservation has not started",
    "ReservationDeleted": "its reservation was deleted",
    "Resources": "the nodes that it needs are in use",
    "launch failed requeued held": "it could not be launched and is held; release it with: scontrol release JOB",
}
_DRAINED = "nodes required for job are down, drained or reserved"


def waits(reason: str, *, job: str) -> str:
    """Reason of a pending job in words, with Slurm's own name in brackets."""
    name, _, rest = reason.strip().strip("()").partition(",")
    key = name.replace("_", " ") if name.replace("_", " ") in _WORDS else name
    words = _WORDS.get(key)
    if words is None and reason.strip("( ").lower().startswith(_DRAINED):
        words = "required nodes are down, drained or reserved; see: sinfo -R"
    if words is None:
        words = _of_a_limit(name)
    if not words:
        return f"waits: {reason}" if reason.strip() not in ("", "None") else ""
    nodes = re.search(r"UnavailableNodes:\s*(\S+?)\)?$", rest)
    unavailable = f" (unavailable: {nodes[1]})" if nodes else ""
    return f"waits: {words.replace('JOB', job)}{unavailable} ({name})"


def _of_a_limit(name: str) -> str:
    if name.startswith("QOS"):
        return "a limit of its QOS is reached; see: sacctmgr show qos"
    if name.startswith("Assoc"):
        return "a limit of its account or user is reached; see: sacctmgr show assoc"
    return ""
