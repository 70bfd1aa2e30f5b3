"""
Evidence of a failed pod: exit code, reason and last lines.

Exit codes are those of holdfast-run (docs/concepts/runtime-launcher.md). Reasons are the kubelet's and the
scheduler's: Evicted (pkg/kubelet/eviction), Preempting and Shutdown, Terminated (pkg/kubelet/nodeshutdown), NodeLost.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast_operator.decisions.facts import NodeFacts, PodFacts
from holdfast_operator.jobs import Stop

FLAGS, STOPPED, HANDED_OVER = 2, 1, 75
BY_THE_NODE = frozenset({"Evicted", "NodeAffinity", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"})
SIGTERM = 128 + 15
_END = re.compile(r"the job ends: (.+)")
_RAISED = re.compile(r"rank \d+ of node (\d+) raised (.+?) in step (\d+)")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")

Kind = Literal["flags", "handed over", "launcher", "node", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Failure:
    kind: Kind
    what: str


def stops(message: str) -> bool:
    """Return True for a launcher's last words where the job ended by its decision."""
    return _END.match(message) is not None


def failure_of(pod: PodFacts, nodes: Mapping[str, NodeFacts]) -> Failure:
    node = nodes.get(pod.node)
    code = pod.exit_code
    if code == HANDED_OVER:
        return Failure(kind="handed over", what="its ranks went to other nodes")
    if pod.reason in BY_THE_NODE or code == SIGTERM:
        return Failure(kind="node", what=pod.reason or "SIGTERM")
    if node is None or not node.is_ready or not node.is_healthy:
        return Failure(kind="node", what=f"node {pod.node} is lost or unhealthy")
    if code == FLAGS:
        return Failure(kind="flags", what=_last_line(pod.message) or "holdfast-run refused its options")
    if code == STOPPED:
        return Failure(kind="stopped", what=_last_line(pod.message))
    named = f" ({pod.reason})" if pod.reason not in ("", "Error") else ""
    what = f"exit code {code}{named}" if code is not None else pod.reason or "no exit code"
    return Failure(kind="launcher", what=what)


def stop_of(pods: Sequence[PodFacts]) -> Stop:
    """Return the reason that the launchers wrote when all of them ended."""
    reasons = [found[1] for pod in pods for found in _END.finditer(pod.message)]
    for reason in reasons:
        if raised := _RAISED.search(reason):
            node = next((pod.node for pod in pods if pod.index == int(raised[1])), "")
            return Stop(what=_ADDRESS.sub("0x...", raised[2]), step=int(raised[3]), node=node)
    last = next((line for pod in pods if (line := _last_line(pod.message))), "no reason in the last lines of its pods")
    return Stop(what=_ADDRESS.sub("0x...", reasons[0] if reasons else last))


def repeats(stop: Stop, earlier: Sequence[Stop]) -> bool:
    """Return True if another node raised the same exception in the same step before: the program is the cause."""
    return stop.step is not None and any(
        (one.what, one.step) == (stop.what, stop.step) and (not one.node or one.node != stop.node) for one in earlier
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
