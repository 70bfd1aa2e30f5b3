"""
This node in Slurm: its mark in the node's comment, HyperPod's request in its state and reason.

Sources: SageMaker developer guide, "Manually replace or reboot a node" (the exact reasons; the state fail waits for
jobs to end, down does not); scontrol manual page, "update node".
"""

import re
import time
from collections.abc import Iterator, Sequence

from holdfast_agent.remedies.breaker import Mark, Stage
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.words import Job, View
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes
from holdfast_common import slurm_answers

REASONS = {"reboot": "Action:Reboot", "replace": "Action:Replace"}
SLURMS_OWN = (
    "Not responding",
    "Kill task failed",
    "Node unexpectedly rebooted",
    "Prolog error",
    "Epilog error",
    "batch job complete failure",
)
"""Reasons set by slurmctld itself, which are no objection to a repair."""
_MARK = re.compile(r"\s*holdfast-remedy:(claim|asked|refused|allow)(?::([a-z-]+):(\d+))?")
_HELD = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT", "RESERVED"})


class RefusedError(Exception):
    """Forbidden; the message has the reason. ``in_use``: it is in progress."""

    def __init__(self, why: str, *, in_use: bool = False) -> None:
        super().__init__(why)
        self.in_use = in_use


class SlurmBook:
    """Marks in comments of nodes, readable by all nodes, writable by root."""

    def __init__(self, *, settings: RemedySettings, program: Program) -> None:
        self._host, self._is_controller = settings.host, settings.is_controller
        self._program = program

    def look(self) -> View:
        nodes = self.nodes()
        own = _named(nodes, self._host)
        ours = any(mark.stage is Stage.ASKED for mark in _marks_of(own))
        asks = own.request
        now_s = time.time()
        return View(
            me=self._host,
            nodes=len(nodes),
            marks=tuple(self._marks(nodes, now_s=now_s)),
            now_s=now_s,
            jobs=tuple(self.jobs()),
            foreign="" if ours and asks else foreign_reason(own),
            asks=asks,
            is_asked=bool(ours and asks),
            is_controller=self._is_controller,
        )

    def nodes(self) -> Sequence[SlurmNode]:
        return parse_nodes(self._program.run(["scontrol", "--oneliner", "show", "node"]))

    def jobs(self) -> Iterator[Job]:
        output = self._program.run(
            ["squeue", "--noheader", f"--nodelist={self._host}", "--states=R,CG,S,SO,ST", "--format=%F|%i|%A|%u"]
        )
        for line in output.splitlines():
            parts = line.strip().split("|")
            if len(parts) == 4:
                yield Job(*parts)

    def write(self, stage: Stage, remedy: str, fault: str = "") -> None:  # noqa: ARG002  people see it in events
        """Mark this node; other text of the comment stays."""
        self._comment(f"holdfast-remedy:{stage.value}:{remedy}:{int(time.time())}")

    def asked(self, remedy: str) -> None:
        """Nothing to do: the comment stays with the node's name, which its successor has."""

    def clear(self) -> None:
        own = _named(self.nodes(), self._host)
        if _marks_of(own):
            self._comment("")

    def _comment(self, mark: str) -> None:
        own = _named(self.nodes(), self._host)
        comment = " ".join(part for part in (_MARK.sub("", own.comment).strip(), mark) if part)
        if comment != own.comment:
            self._program.run(["scontrol", "update", f"NodeName={self._host}", f"Comment={comment}"])

    @staticmethod
    def _marks(nodes: Sequence[SlurmNode], *, now_s: float) -> Iterator[Mark]:
        for node in nodes:
            marks = _marks_of(node)
            yield from marks
            if not marks and node.request:
                # HyperPod's agent or a person asked for it: it is being taken now, whoever wanted that.
                yield Mark(node=node.name, stage=Stage.ASKED, since_s=now_s)


class SlurmAsker:
    def __init__(self, *, settings: RemedySettings, program: Program) -> None:
        self._book = SlurmBook(settings=settings, program=program)
        self._program, self._host = program, settings.host

    def ask(self, remedy: str) -> None:
        """Fail: no new jobs start here, running ones continue. Raises SlurmError and RefusedError."""
        own = _named(self._book.nodes(), self._host)
        ours = any(mark.stage is Stage.ASKED for mark in _marks_of(own))
        if own.request == remedy and ours:
            return
        if (why := foreign_reason(own)) and not (ours and own.request):
            raise RefusedError(why, in_use=bool(own.request))
        self._update("FAIL", remedy)

    def force(self, remedy: str) -> None:
        """Down: gives up remains of ended jobs. Raises SlurmError and RefusedError."""
        output = self._program.run(["squeue", "--noheader", f"--nodelist={self._host}", "--format=%t"])
        if {line.strip() for line in output.splitlines() if line.strip()} - {"CG"}:
            raise RefusedError("other jobs on this node would be killed")
        self._update("DOWN", remedy)

    def _update(self, state: str, remedy: str) -> None:
        self._program.run(
            ["scontrol", "update", f"NodeName={self._host}", f"State={state}", f"Reason={REASONS[remedy]}"]
        )


def requeue(task: str, *, host: str, program: Program) -> None:
    """Requeue a task that has this node alone. Raises SlurmError, RefusedError."""
    fields = _task(task, program.run(["scontrol", "--oneliner", "show", "job", task]))
    if fields.get("JobState") in slurm_answers.BEFORE_START:
        return
    if fields.get("NumNodes") != "1" or host not in (fields.get("NodeList"), fields.get("BatchHost")):
        raise RefusedError(f"task {task} is on {fields.get('NodeList', 'no node')}, not on {host} alone")
    program.run(["scontrol", "requeue", _name(task, fields)])


def _task(task: str, output: str) -> "dict[str, str]":
    """The number of the last task of an array is that of the whole array."""
    for fields in slurm_answers.parse_jobs(output):
        if task in (fields.get("JobId"), _name("", fields)):
            return fields
    raise RefusedError(f"Slurm shows no task {task}")


def _name(task: str, fields: "dict[str, str]") -> str:
    number = fields.get("ArrayTaskId", "")
    return f"{fields['ArrayJobId']}_{number}" if number.isdigit() and "ArrayJobId" in fields else task


def foreign_reason(node: SlurmNode) -> str:
    """Reason set by others; empty if none."""
    if not node.reason or node.reason.startswith(SLURMS_OWN):
        return ""
    if node.request or node.base == "DOWN" or node.flags & _HELD:
        by = f" ({node.reason_by})" if node.reason_by else ""
        return f"the node is {node.state} with the reason '{node.reason}'{by}, which is not ours"
    return ""


def _named(nodes: Sequence[SlurmNode], host: str) -> SlurmNode:
    for node in nodes:
        if node.name == host:
            return node
    raise RefusedError(f"Slurm has no node {host}: only compute nodes are replaced or rebooted, never a controller")


def _marks_of(node: SlurmNode) -> "tuple[Mark, ...]":
    found = _MARK.search(node.comment)
    if not found:
        return ()
    return (Mark(node=node.name, stage=Stage(found[1]), remedy=found[2] or "", since_s=float(found[3] or 0)),)


__all__ = ["RefusedError", "SlurmAsker", "SlurmBook", "SlurmError", "foreign_reason", "requeue"]
