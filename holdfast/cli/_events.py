"""``holdfast events``: what happened, read from the cluster's CloudWatch log group."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from holdfast.cli._deployed import read_events
from holdfast.cli._output import console
from holdfast.cli._session import load
from holdfast_common import Event

POLL_S = 0.5
COLOURS = {"control-plane": "cyan", "lifecycle": "blue", "job": "green", "cli": "magenta"}
BAD = frozenset({"fault_injected", "node_lost", "node_failed", "step_failed", "cluster_failed"})


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as they happen.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may be repeated.")] = None,
) -> None:
    """Print the cluster's events, oldest first."""
    context = load()
    seen: set[str] = set()
    while True:
        for event in read_events(context):
            line = event.to_json()
            if line in seen or (kind and event.kind not in kind):
                continue
            seen.add(line)
            if json:
                print(line, flush=True)
            else:
                console.print(render(event), soft_wrap=True)
        if not follow:
            return
        time.sleep(POLL_S)


def render(event: Event) -> Text:
    """One line for people: time, source, node, kind and what it carries."""
    at = datetime.fromtimestamp(event.time_ns / 1e9, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
    facts = [event.fault, event.action, event.evidence, f"job {event.job}" if event.job else ""]
    facts += [f"{key}={_short(value)}" for key, value in sorted(event.detail.items())]
    facts += [f"{event.duration_s:.1f} s"] if event.duration_s is not None else []
    return Text.assemble(
        (at, "dim"),
        "  ",
        (f"{event.source:<13}", COLOURS.get(event.source, "white")),
        f" {event.node:<19} ",
        (f"{event.kind:<19}", "bold red" if event.kind in BAD else "bold"),
        " ",
        "  ".join(fact for fact in facts if fact),
    )


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
