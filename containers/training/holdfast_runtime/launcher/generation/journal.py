"""
Journal of a launcher: lines for people or machines, events for the cluster, numbers for Prometheus.

All launchers of a job write into one output. So the leader alone writes what all of them see (``tell``), and each
launcher what nobody else knows (``say``). The rest is of level debug, and in the file of each launcher.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

from holdfast_common import EventLog, kinds
from holdfast_runtime.membership import View

GAUGES: Mapping[str, str] = {
    "generation": "Generation of the committed view.",
    "goodput_ratio": "Share of the time since the start in which ranks trained, without steps done again.",
    "local_ranks": "Processes of this node that hold a rank.",
    "local_spares": "Warm processes of this node that hold none.",
    "remaining_seconds": "Time that the other steps take at the pace since the start.",
    "step": "Updates that are finished.",
    "steps": "Updates of the whole loop.",
}


@dataclass
class Journal:
    """One per launcher."""

    node: int
    as_json: bool
    events: EventLog
    debug: bool = False
    """Whether each launcher writes all of its lines."""
    file: TextIO | None = None
    """Gets all lines, whatever the level."""
    leads: Callable[[], bool] = lambda: True
    """Whether this launcher is the leader: of those in reach that the view has, the one of the lowest node."""
    answer: str = ""
    """How the job gets a lost node back: see ``allocation``."""
    recoveries: int = 0
    last_recovery_s: float = 0.0
    steps_lost: int = 0
    deaths: dict[str, int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    """Nodes that were lost since the last view."""

    def say(self, text: str) -> None:
        self._write(text, shown=True)

    def tell(self, text: str) -> None:
        self._write(text, shown=self.leads())

    def note(self, text: str) -> None:
        self._write(text, shown=False)

    def tell_lost(self, node: int, text: str) -> None:
        self._write(text, shown=self.leads() and not self.lost)
        self.lost.add(node)

    def _write(self, text: str, *, shown: bool) -> None:
        if not shown and not self.debug and self.file is None:
            return
        if self.as_json:
            line = json.dumps({"time_ns": time.time_ns(), "node": self.node, "message": text})
        else:
            now = time.time()
            clock = f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"
            line = f"{clock} holdfast-run: node {self.node}: {text}"
        if shown or self.debug:
            print(line, file=sys.stderr, flush=True)
        if self.file is not None:
            try:
                print(line, file=self.file, flush=True)
            except OSError:  # a full disk must not end the training
                self.file = None

    def event(self, kind: str, *, evidence: str = "", duration_s: float | None = None, **detail: "str | int") -> None:
        self.event_at(None, kind, evidence=evidence, duration_s=duration_s, detail=detail)

    def event_at(
        self,
        time_ns: int | None,
        kind: str,
        *,
        evidence: str = "",
        duration_s: float | None = None,
        detail: Mapping[str, "str | int | float"],
    ) -> None:
        """
        An event of the cluster. A full disk must not end the training that it would tell about.

        Args:
            time_ns: When it was; None for now.
        """
        try:
            self.events.write(
                kind=kind,
                evidence=evidence,
                duration_s=duration_s,
                detail={"launcher": self.node, **detail},
                time_ns=time_ns,
            )
        except OSError as error:
            self.say(f"event {kind} was not kept: {error}")

    def died(self, how: str) -> None:
        self.deaths[how] = self.deaths.get(how, 0) + 1

    def view(self, view: View, *, seconds: float, moved: Mapping[int, int], recovered: bool) -> None:
        """
        A view is committed.

        Args:
            seconds: Since the trouble that it follows.
        """
        nodes = [node for node, incarnation in enumerate(view.nodes) if incarnation >= 0]
        self.tell(describe_view(view, seconds=seconds, moved=moved, lost=self.lost))
        self.lost = set()
        if recovered:
            self.recovered(seconds=seconds, steps_lost=view.lost_steps)
        self.event(
            kinds.VIEW_COMMITTED,
            duration_s=seconds,
            generation=view.generation,
            step=view.resume_step,
            lost_steps=view.lost_steps,
            spares=len(view.spares),
            nodes=",".join(map(str, nodes)),
            **({"spare": self.answer} if len(nodes) < len(view.nodes) and self.answer else {}),
        )

    def recovered(self, *, seconds: float, steps_lost: int) -> None:
        self.recoveries += 1
        self.last_recovery_s = seconds
        self.steps_lost += steps_lost

    def metrics(self, gauges: Mapping[str, float]) -> str:
        """Return Prometheus' text: what this journal counts, and the given values of ``GAUGES``."""
        values: list[tuple[str, str, str, float]] = [
            *((name, "gauge", GAUGES[name], value) for name, value in gauges.items()),
            ("recoveries_total", "counter", "Views that followed a fault.", self.recoveries),
            ("last_recovery_seconds", "gauge", "From the last fault to its view.", self.last_recovery_s),
            ("steps_lost_total", "counter", "Committed updates that were done again.", self.steps_lost),
        ]
        lines = []
        for name, kind, what, value in values:
            lines += [f"# HELP holdfast_{name} {what}", f"# TYPE holdfast_{name} {kind}"]
            lines.append(f'holdfast_{name}{{node="{self.node}"}} {value}')
        lines += ["# HELP holdfast_deaths_total Deaths of processes.", "# TYPE holdfast_deaths_total counter"]
        for how, count in sorted(self.deaths.items()):
            lines.append(f'holdfast_deaths_total{{node="{self.node}",how="{how}"}} {count}')
        return "\n".join(lines) + "\n"


def describe_view(view: View, *, seconds: float, moved: Mapping[int, int], lost: Iterable[int]) -> str:
    nodes = [node for node, incarnation in enumerate(view.nodes) if incarnation >= 0]
    spares = f"{len(view.spares)} {'spare' if len(view.spares) == 1 else 'spares'} ready"
    text = f"generation {view.generation}: {len(view.ranks)} ranks on nodes {ranges(nodes)}, {spares}"
    text += f", step {view.resume_step}"
    if view.lost_steps:
        text += f", {view.lost_steps} committed steps are done again"
    gone = sorted(set(lost) - set(nodes))
    if gone:
        text += f"; lost nodes {ranges(gone)}"
    if moved:
        text += f"; spares of nodes {ranges(sorted(set(moved.values())))} take ranks {ranges(sorted(moved))}"
    return text + (f"; agreed in {1000 * seconds:.0f} ms" if view.generation > 1 else "")


def ranges(numbers: Iterable[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
