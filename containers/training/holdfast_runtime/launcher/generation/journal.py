"""What a launcher tells: lines for people or machines, events for the cluster, numbers for Prometheus."""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast_common import EventLog, kinds
from holdfast_runtime.membership import View


@dataclass
class Journal:
    """One per launcher."""

    node: int
    as_json: bool
    events: EventLog
    recoveries: int = 0
    last_recovery_s: float = 0.0
    steps_lost: int = 0
    deaths: dict[str, int] = field(default_factory=dict)

    def say(self, text: str, **facts: "str | int | float") -> None:
        """A line on standard error."""
        if self.as_json:
            line = json.dumps({"time_ns": time.time_ns(), "node": self.node, "message": text, **facts})
        else:
            now = time.time()
            clock = f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"
            line = f"{clock} holdfast-run: node {self.node}: {text}"
        print(line, file=sys.stderr, flush=True)

    def event(self, kind: str, *, evidence: str = "", duration_s: float | None = None, **detail: "str | int") -> None:
        """An event of the cluster, now."""
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
        """Count a process's death by its kind."""
        self.deaths[how] = self.deaths.get(how, 0) + 1

    def view(self, view: View, *, seconds: float, taken: list[int], recovered: bool) -> None:
        """
        A view is committed.

        Args:
            seconds: Since the trouble that it follows.
            taken: Ranks that spares of this node got.
            recovered: Whether it follows a fault.
        """
        nodes = [node for node, incarnation in enumerate(view.nodes) if incarnation >= 0]
        what = f"generation {view.epoch}: {len(view.ranks)} ranks on nodes {nodes}, {len(view.spares)} spares"
        what += f", step {view.resume_step}"
        if view.lost_steps:
            what += f", {view.lost_steps} committed steps are done again"
        if view.epoch > 1:
            what += f"; agreed in {1000 * seconds:.0f} ms"
        self.say(what + (f"; here spares take ranks {taken}" if taken else ""))
        if recovered:
            self.recovered(seconds=seconds, steps_lost=view.lost_steps)
        self.event(
            kinds.VIEW_COMMITTED,
            duration_s=seconds,
            epoch=view.epoch,
            step=view.resume_step,
            lost_steps=view.lost_steps,
            spares=len(view.spares),
            nodes=",".join(map(str, nodes)),
        )

    def recovered(self, *, seconds: float, steps_lost: int) -> None:
        """Count a view that followed trouble."""
        self.recoveries += 1
        self.last_recovery_s = seconds
        self.steps_lost += steps_lost

    def metrics(self, *, epoch: int, ranks: int, spares: int, step: int) -> str:
        """Prometheus's text format."""
        values: list[tuple[str, str, str, float]] = [
            ("epoch", "gauge", "Generation of the committed view.", epoch),
            ("local_ranks", "gauge", "Processes of this node that hold a rank.", ranks),
            ("local_spares", "gauge", "Warm processes of this node that hold none.", spares),
            ("step", "gauge", "Updates that are finished.", step),
            ("recoveries_total", "counter", "Views that followed a fault.", self.recoveries),
            ("last_recovery_seconds", "gauge", "From the last fault to its view.", self.last_recovery_s),
            ("steps_lost_total", "counter", "Committed updates that were done again.", self.steps_lost),
        ]
        lines = []
        for name, kind, what, value in values:
            lines += [f"# HELP holdfast_{name} {what}", f"# TYPE holdfast_{name} {kind}"]
            lines.append(f'holdfast_{name}{{node="{self.node}"}} {value:g}')
        lines += ["# HELP holdfast_deaths_total Deaths of processes.", "# TYPE holdfast_deaths_total counter"]
        for how, count in sorted(self.deaths.items()):
            lines.append(f'holdfast_deaths_total{{node="{self.node}",how="{how}"}} {count}')
        return "\n".join(lines) + "\n"
