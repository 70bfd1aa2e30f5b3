"""What ``scontrol --oneliner show node`` says. Pure."""

import re
from dataclasses import dataclass

_REASON = re.compile(r" Reason=(.*?)(?: \[([^\]@]*)@([^\]]*)\])?(?= Comment=|\s*$)")
_COMMENT = re.compile(r" Comment=(.*?)\s*$")


@dataclass(frozen=True)
class SlurmNode:
    """
    A node as Slurm's controller sees it.

    Args:
        name: As in slurm.conf.
        base: IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN ...
        flags: DRAIN, FAIL, NOT_RESPONDING, COMPLETING ...
        reason: Without who and when.
        reason_by: Who gave it; empty where it is not said.
        comment: Free text.
        boot_time: As Slurm writes it; empty where it is not known.
    """

    name: str
    base: str
    flags: "frozenset[str]" = frozenset()
    reason: str = ""
    reason_by: str = ""
    comment: str = ""
    boot_time: str = ""

    @property
    def state(self) -> str:
        """As Slurm writes it."""
        return "+".join([self.base, *sorted(self.flags)])

    @property
    def is_lost(self) -> bool:
        """It does not answer: by Slurm's own finding, not because somebody set it so."""
        return "NOT_RESPONDING" in self.flags and self.base in ("DOWN", "UNKNOWN")


def parse_nodes(text: str) -> "tuple[SlurmNode, ...]":
    """All nodes of the output; lines that are none are passed over."""
    found = []
    for line in text.splitlines():
        # Texts that people write come last, and may hold anything.
        head = re.split(r" (?:Reason|Comment|OS)=", line, maxsplit=1)[0]
        fields = dict(word.split("=", 1) for word in f"{head}{_tail(line)}".split() if "=" in word)
        if not fields.get("NodeName") or not fields.get("State"):
            continue
        base, *flags = fields["State"].split("+")
        silent = ["NOT_RESPONDING"] if base.endswith("*") else []
        reason, comment = _REASON.search(line), _COMMENT.search(line)
        boot = fields.get("BootTime", "")
        found.append(
            SlurmNode(
                name=fields["NodeName"],
                base=base.rstrip("*~#!%$@^-+"),
                flags=frozenset([*flags, *silent]),
                reason=reason[1].strip() if reason else "",
                reason_by=(reason[2] or "") if reason else "",
                comment=comment[1].strip() if comment else "",
                boot_time="" if boot == "None" else boot,
            )
        )
    return tuple(found)


def _tail(line: str) -> str:
    """State and boot time stand behind OS, which holds spaces."""
    known = re.findall(r" (State|BootTime)=(\S+)", line.split(" Reason=", 1)[0].split(" Comment=", 1)[0])
    return "".join(f" {name}={value}" for name, value in known)
