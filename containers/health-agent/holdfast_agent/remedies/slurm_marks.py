"""
Marks in Slurm: a report in the ``Extra`` of a node, an order in its comment, HyperPod's request in state and reason.

Sources: SageMaker developer guide, "Manually replace or reboot a node" (the exact reasons; the state fail waits for
jobs to end, down does not); scontrol manual page, "update node".
"""

import re
import time
from typing import Optional
from urllib.parse import quote, unquote

from holdfast_agent.remedies.seams import RefusedError
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes
from holdfast_common import slurm_answers
from holdfast_common.decisions import NodeState, Order, Report, Stage, depends_on_jobs

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
_ORDER = re.compile(r"\s*holdfast-remedy:(\S+)")
_REPORT = re.compile(r"\s*holdfast-verdict:(\S+)")
_HELD = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT", "RESERVED"})


class SlurmMarks:
    """Readable by all nodes, writable by root; ``host``: of a node's agent."""

    def __init__(self, *, program: Program, host: str = "") -> None:
        self._program, self._host = program, host

    def look(self) -> "list[NodeState]":
        return [self._state(node) for node in self._nodes()]

    def node(self, name: str) -> NodeState:
        return self._state(self._named(name))

    def own(self) -> NodeState:
        return self._state(self._named(self._host), with_jobs=False)

    def report(self, report: Optional[Report]) -> None:
        """Other text of the field stays."""
        text = "" if report is None else f"holdfast-verdict:{quote(report.to_json(), safe='')}"
        before = self._named(self._host).extra
        self._update(self._host, "Extra", before, _replaced(before, _REPORT, text))

    def write(self, node: NodeState, order: Optional[Order]) -> None:
        text = "" if order is None else f"holdfast-remedy:{quote(order.to_text(), safe=':')}"
        before = self._named(node.name).comment
        self._update(node.name, "Comment", before, _replaced(before, _ORDER, text))

    def ask(self, node: NodeState, remedy: str) -> None:
        """Fail: no new jobs start here, running ones continue. Raises SlurmError and RefusedError."""
        self._set(node.name, "FAIL", remedy)

    def force(self, node: NodeState, remedy: str) -> None:
        """Down: gives up remains of ended jobs. Raises SlurmError and RefusedError."""
        output = self._program.run(["squeue", "--noheader", f"--nodelist={node.name}", "--format=%t"])
        if {line.strip() for line in output.splitlines() if line.strip()} - {"CG"}:
            raise RefusedError("other jobs on this node would be killed")
        self._set(node.name, "DOWN", remedy)

    def requeue(self, node: NodeState, task: str) -> None:
        """Requeue a task that has this node alone and began before the request. Raises SlurmError, RefusedError."""
        try:
            output = self._program.run(["scontrol", "--oneliner", "show", "job", task])
        except SlurmError as error:
            if "Invalid job id" in str(error):
                raise RefusedError(str(error)) from None
            raise
        fields = _task(task, output)
        since_s = node.order.since_s if node.order is not None else 0.0
        if fields.get("JobState") in slurm_answers.BEFORE_START or (since_s and _started_s(fields) > since_s):
            return
        if fields.get("NumNodes") != "1" or node.name not in (fields.get("NodeList"), fields.get("BatchHost")):
            raise RefusedError(f"task {task} is on {fields.get('NodeList', 'no node')}, not on {node.name} alone")
        self._program.run(["scontrol", "requeue", _name(task, fields)])

    def _nodes(self, *names: str) -> "tuple[SlurmNode, ...]":
        return parse_nodes(self._program.run(["scontrol", "--oneliner", "show", "node", *names]))

    def _named(self, host: str) -> SlurmNode:
        for node in self._nodes(host):
            if node.name == host:
                return node
        raise RefusedError(f"Slurm has no node {host}: only compute nodes are replaced or rebooted, never a controller")

    def _state(self, node: SlurmNode, *, with_jobs: bool = True) -> NodeState:
        order, report = Order.from_text(_found(_ORDER, node.comment)), Report.from_json(_found(_REPORT, node.extra))
        is_ours = node.request and order is not None and order.stage in (Stage.GO, Stage.ASKED)
        return NodeState(
            name=node.name,
            report=report,
            order=order,
            request=node.request,
            foreign="" if is_ours else foreign_reason(node),
            jobs=self._jobs(node.name) if with_jobs and depends_on_jobs(report, order) else (),
        )

    def _jobs(self, host: str) -> "tuple[frozenset[str], ...]":
        output = self._program.run(
            ["squeue", "--noheader", f"--nodelist={host}", "--states=R,CG,S,SO,ST", "--format=%i|%A"]
        )
        return tuple(frozenset(line.strip().split("|")) for line in output.splitlines() if line.strip())

    def _set(self, host: str, state: str, remedy: str) -> None:
        self._program.run(["scontrol", "update", f"NodeName={host}", f"State={state}", f"Reason={REASONS[remedy]}"])

    def _update(self, host: str, field: str, before: str, text: str) -> None:
        if text != before:
            self._program.run(["scontrol", "update", f"NodeName={host}", f"{field}={text}"])


def decides(program: Program, *, host: str) -> bool:
    """Return True if the controller on this host is the one that acts; a cluster may have backups."""
    states = re.findall(r"Slurmctld\((\w+)\) at (\S+) is (UP|DOWN)", program.run(["scontrol", "ping"]))
    acting = next((name for _, name, state in states if state == "UP"), "")
    return acting.partition(".")[0] == host.partition(".")[0]


def foreign_reason(node: SlurmNode) -> str:
    """Reason set by others; empty if none."""
    if not node.reason or node.reason.startswith(SLURMS_OWN):
        return ""
    if node.request or node.base == "DOWN" or node.flags & _HELD:
        by = f" ({node.reason_by})" if node.reason_by else ""
        return f"the node is {node.state} with the reason '{node.reason}'{by}, which is not ours"
    return ""


def _task(task: str, output: str) -> "dict[str, str]":
    """The number of the last task of an array is that of the whole array."""
    for fields in slurm_answers.parse_jobs(output):
        if task in (fields.get("JobId"), _name("", fields)):
            return fields
    raise RefusedError(f"Slurm shows no task {task}")


def _started_s(fields: "dict[str, str]") -> float:
    """UTC seconds, by the controller's clock, which is the decider's; 0 for unknown."""
    try:
        return time.mktime(time.strptime(fields.get("StartTime", ""), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def _name(task: str, fields: "dict[str, str]") -> str:
    number = fields.get("ArrayTaskId", "")
    return f"{fields['ArrayJobId']}_{number}" if number.isdigit() and "ArrayJobId" in fields else task


def _found(pattern: "re.Pattern[str]", text: str) -> str:
    found = pattern.search(text)
    return unquote(found[1]) if found else ""


def _replaced(text: str, pattern: "re.Pattern[str]", mark: str) -> str:
    return " ".join(part for part in (pattern.sub("", "" if text == "(null)" else text).strip(), mark) if part)


__all__ = ["REASONS", "SlurmMarks", "decides", "foreign_reason"]
