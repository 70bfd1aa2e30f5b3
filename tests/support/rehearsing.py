"""``holdfast rehearse`` without a cluster: what it asks for and reads is a story's."""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.rehearsal import rehearse_jobs
from holdfast_common import Event

JOB = "7"


class Story:
    """Events of a job, which come as somebody looks for them, and what the rehearsal says of each of its steps."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.told: list[str] = []

    def read(self, _context: object, *, since_ns: int = 0) -> Sequence[Event]:
        return self.events

    @property
    def outcome(self) -> str:
        """Of the job; empty while it goes on."""
        return ""

    def write(self, kind: str, *, source: str = "job", **detail: Any) -> None:
        self.events.append(Event(time_ns=len(self.events), source=source, job=JOB, kind=kind, detail=detail))

    @contextmanager
    def step(self, what: str) -> Any:
        yield SimpleNamespace(update=lambda text: self.told.append(f"{what}: {text}"))


def rehearsed(story: Story, monkeypatch: pytest.MonkeyPatch, *, file: str, **acts: Any) -> list[Event]:
    """
    The events that the rehearsal gives back.

    Args:
        acts: What it does to the cluster, by ``module__name`` of its room.
    """
    for path, value in {
        "jobs.check_fits": lambda *_, **__: None,
        "jobs.submit_any": lambda *_, **__: JOB,
        "jobs.read_status": lambda _: None,
        "jobs.end_late_tasks": lambda *_, **__: None,
        "jobs.read_events": story.read,
        "jobs.summary": lambda *_, **__: "",
        "jobs.step": story.step,
        "resizing.step": story.step,
        "watching.read_events": story.read,
        "watching.job_outcome": lambda *_, **__: story.outcome,
        "watching.POLL_S": 0.0,
        "watching.EVENTS_WITHIN_S": 0.0,
        **{name.replace("__", "."): act for name, act in acts.items()},
    }.items():
        monkeypatch.setattr(f"holdfast.cli.rehearsal.{path}", value)
    context: Any = SimpleNamespace(orchestrator="slurm")
    return rehearse_jobs(context, files=[Path(file)], prepare=None)
