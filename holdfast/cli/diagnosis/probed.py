"""Ranks of a job, from the JSON objects of its nodes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.cli.diagnosis.evidence import Process, Rank
from holdfast.cli.diagnosis.stacks import parse_stack


@dataclass(frozen=True, kw_only=True)
class NodeProbe:
    node: str
    processes: Sequence[Mapping[str, Any]] = ()
    launchers: Sequence[Mapping[str, Any]] = ()
    stacks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    agent: Mapping[str, Any] | None = None
    numbers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    full: Sequence[str] = ()
    driver: str = ""

    @property
    def statuses(self) -> "list[Mapping[str, Any]]":
        return [one["status"] for one in self.launchers if isinstance(one.get("status"), dict)]

    @property
    def incidents(self) -> "list[Mapping[str, Any]]":
        return list((self.agent or {}).get("incidents", ()))

    def measured(self) -> dict[str, list[float]]:
        """Numbers of /proc and of the agent, by metric."""
        found = {name: list(values) for name, values in self.numbers.items()}
        for name, _, value in (self.agent or {}).get("numbers", ()):
            found.setdefault(str(name), []).append(float(value))
        return found


def parse_probe(node: str, text: str) -> NodeProbe:
    """Parse the last line of a node's answer. Raises: ValueError."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError("it printed no JSON object")
    found = json.loads(lines[-1])
    names = NodeProbe.__dataclass_fields__.keys() - {"node"}
    return NodeProbe(node=node, **{name: found[name] for name in names if name in found})


def ranks_of(probe: NodeProbe) -> list[Rank]:
    """Ranks of a node: its launchers', or else the processes that have a rank in their environment."""
    processes = {int(one["pid"]): one for one in probe.processes}
    reported = [
        (int(one["rank"]), int(one["pid"]), one)
        for status in probe.statuses
        for one in status.get("processes", ())
        if one.get("role") == "rank"
    ]
    if not reported:
        reported = [(rank, pid, {}) for pid, rank in _of_environment(processes).items()]
    pids = {pid for _, pid, _ in reported}
    return [_rank(probe, processes, rank=rank, pid=pid, report=report, ranks=pids) for rank, pid, report in reported]


def _of_environment(processes: Mapping[int, Mapping[str, Any]]) -> dict[int, int]:
    """Rank of each process that torchrun or srun started; of several of one rank the one nearest to init."""
    for variable in ("RANK", "SLURM_PROCID"):
        found: dict[int, int] = {}
        for pid, one in processes.items():
            number = str(one["variables"].get(variable, ""))
            is_python = str(one["name"]).startswith(("python", "pt_"))
            is_launcher = "torchrun" in one["command"] or "torch.distributed.run" in one["command"]
            parent = processes.get(int(one["parent"]), {})
            of_python = str(parent.get("name")).startswith(("python", "pt_"))
            inherits = of_python and parent.get("variables", {}).get(variable) == number
            if number.isdecimal() and is_python and not inherits and not (is_launcher and variable != "RANK"):
                found[pid] = int(number)
        if found:
            return found
    return {}


def _rank(
    probe: NodeProbe,
    processes: Mapping[int, Mapping[str, Any]],
    *,
    rank: int,
    pid: int,
    report: Mapping[str, Any],
    ranks: set[int],
) -> Rank:
    stack = probe.stacks.get(str(pid), {})
    seen = processes.get(pid)
    silent = report.get("silent_s")
    return Rank(
        rank=rank,
        node=probe.node,
        process=_process(seen) if seen is not None else Process(pid=pid, name="", states="X"),
        phase=str(report.get("phase", "")),
        step=int(report["step"]) if "step" in report else None,
        silent_s=float(silent) if silent is not None else None,
        workers=tuple(_process(one) for one in _below(processes, pid) if int(one["pid"]) not in ranks),
        stack=parse_stack(stack.get("text", "")),
        no_stack=stack.get("missing", ""),
        asked="asked" in stack,
    )


def _below(processes: Mapping[int, Mapping[str, Any]], pid: int) -> list[Mapping[str, Any]]:
    """Children in Python, such as workers of a data loader."""
    return [
        one
        for one in processes.values()
        if int(one["parent"]) == pid
        and str(one["name"]).startswith(("python", "pt_"))
        and "resource_tracker" not in one["command"]
    ]


def _process(one: Mapping[str, Any]) -> Process:
    return Process(
        pid=int(one["pid"]),
        name=str(one["name"]),
        states=str(one["states"]),
        waits_in=str(one["waits_in"]),
        cpu=float(one["cpu"]),
        moved_bytes=int(one["moved"]),
    )
