"""
Parsers of Slurm's commands, versions 22.05 to 26.05. Pure.

Used by the agent, the local cloud and the command line; recorded output is in tests/cases/slurm.
"""

import re
from dataclasses import dataclass

MARKS = {"Action:Reboot": "reboot", "Action:Replace": "replace"}
"""HyperPod's reasons, and the remedies that they request (developer guide, "Manually replace or reboot a node")."""
APPENDED = " : "
"""slurmctld writes it between the reason of a node and a text of its own, since 23.02."""
WAITING = frozenset({
    "PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING", "EXPEDITING", "REQUEUE_FED",
    "REQUEUE_HOLD", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
})  # fmt: skip
"""States of a job that has not ended (squeue(1), "JOB STATE CODES"; EXPEDITING: seen with 26.05)."""
BEFORE_START = frozenset({"PENDING", "EXPEDITING", "REQUEUED", "REQUEUE_HOLD"})
"""States of a job that waits to be started, or to be started again."""

_LAST_FIELDS = "Reason|ReservationName|Comment|Extra|InstanceId|InstanceType|Topology"
_TAIL = re.compile(rf" (?=(?:{_LAST_FIELDS})=)")
_BY = re.compile(r"(.*?)\s*\[([^\]@]*)@[^\]]*\]", re.DOTALL)
_HEAD_FIELDS = re.compile(r"(?:^| )(NodeName|State|BootTime)=(\S*)")
_SUFFIXES = "*~#!%$@^-+"
"""Signs behind a state, such as the star of a node that does not respond (sinfo(1), "NODE STATE CODES")."""


@dataclass(frozen=True)
class SlurmNode:
    """
    A node as Slurm's controller reports it.

    Args:
        base: IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN ...
        flags: DRAIN, FAIL, NOT_RESPONDING, COMPLETING ...
        reason: Without user and time, with all that slurmctld has appended.
        boot_time: As Slurm writes it; empty until the node's slurmd has registered.
    """

    name: str
    base: str
    flags: "frozenset[str]" = frozenset()
    reason: str = ""
    reason_by: str = ""
    comment: str = ""
    extra: str = ""
    boot_time: str = ""

    @property
    def state(self) -> str:
        return "+".join([self.base, *sorted(self.flags)])

    @property
    def is_lost(self) -> bool:
        """True if Slurm finds that it does not respond, unlike one that a person set down."""
        return "NOT_RESPONDING" in self.flags and self.base in ("DOWN", "UNKNOWN")

    @property
    def given_reason(self) -> str:
        """Without what slurmctld has appended."""
        return self.reason.partition(APPENDED)[0]

    @property
    def request(self) -> str:
        """Remedy that the reason requests from HyperPod: ``reboot``, ``replace``, or nothing."""
        return MARKS.get(self.given_reason, "")

    @property
    def registered(self) -> bool:
        """True if its slurmd has registered since the controller started or the node was set down, and responds."""
        is_up = self.base in ("IDLE", "MIXED", "ALLOCATED") and "NOT_RESPONDING" not in self.flags
        return is_up and bool(self.boot_time)

    @property
    def usable(self) -> bool:
        return self.registered and not self.flags & {"DRAIN", "FAIL"}

    @property
    def free(self) -> bool:
        return self.base not in ("ALLOCATED", "MIXED") and "COMPLETING" not in self.flags


def parse_nodes(text: str) -> "tuple[SlurmNode, ...]":
    """Read ``scontrol --oneliner show node``; lines that are no node are skipped."""
    found = []
    for line in text.splitlines():
        head, *tail = _TAIL.split(line)
        fields = dict(_HEAD_FIELDS.findall(head))
        if not fields.get("NodeName") or not fields.get("State"):
            continue
        last = dict(one.partition("=")[::2] for one in reversed(tail))
        base, *flags = fields["State"].split("+")
        silent = ["NOT_RESPONDING"] if base.endswith("*") else []
        reason, by = _reason(last.get("Reason", ""))
        boot = fields.get("BootTime", "")
        found.append(
            SlurmNode(
                name=fields["NodeName"],
                base=base.rstrip(_SUFFIXES),
                flags=frozenset([*flags, *silent]),
                reason=reason,
                reason_by=by,
                comment=last.get("Comment", "").strip(),
                extra=last.get("Extra", "").strip(),
                boot_time="" if boot == "None" else boot,
            )
        )
    return tuple(found)


def _reason(text: str) -> "tuple[str, str]":
    found = _BY.match(text)
    return (found[1], found[2]) if found else (text.strip(), "")


def parse_jobs(text: str) -> "tuple[dict[str, str], ...]":
    """
    Read the fields of ``scontrol --oneliner show job`` up to the command, one mapping per job.

    A job name may hold anything: of two fields with one name the later one is Slurm's.
    """
    heads = (line.split(" Command=", 1)[0] for line in text.splitlines())
    return tuple(dict(word.split("=", 1) for word in head.split() if "=" in word) for head in heads if head.strip())


def parse_exit(text: str) -> "tuple[int, int]":
    """Read exit code and signal of a job: ``3:0``, or a wait status as squeue of 22.05 prints it; else zeros."""
    code, colon, number = text.strip().partition(":")
    if not code.isdecimal() or (colon and not number.isdecimal()):
        return 0, 0
    return (int(code), int(number)) if colon else (int(code) >> 8, int(code) & 127)


__all__ = ["APPENDED", "BEFORE_START", "MARKS", "WAITING", "SlurmNode", "parse_exit", "parse_jobs", "parse_nodes"]
