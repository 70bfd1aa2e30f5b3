"""``holdfast rehearse`` where agents act: a fault is planted only when the job has a spare again."""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.rehearsal import rehearse_jobs
from holdfast_common import Event, kinds

BEGIN = (kinds.JOB_STARTED, kinds.SPARE_READY, kinds.CHECKPOINT_SAVED)
LOSS = (kinds.NODE_LOST, kinds.VIEW_COMMITTED, kinds.JOB_RESUMED, kinds.NODE_REPLACED)
HEALED = (kinds.HANDED_OVER, kinds.NODE_REPLACED, kinds.JOB_FINISHED)
READS = 4
"""Looks after the loss until the launcher of the new node is there."""


class Story:
    """A job that begins with a spare, loses a node, and has a spare again some looks later, or ends without one."""

    def __init__(self, *, comes_back: bool) -> None:
        self.events = [Event(time_ns=0, source="agent", kind=kinds.AGENT_STARTED, detail={"mode": "act"})]
        self.planted: list[tuple[str, ...]] = []
        self.told: list[str] = []
        self._comes_back, self._reads, self._lost = comes_back, 0, False
        self._write(*BEGIN)

    @property
    def ended(self) -> bool:
        return self._lost and not self._comes_back and self._reads > READS

    def lose(self, *_: Any, **__: Any) -> str:
        self._lost, self._reads = True, 0
        self._write(*LOSS)
        return "i-1"

    def plant(self, *_: Any, **__: Any) -> Any:
        self.planted.append(tuple(event.kind for event in self.events[1 + len(BEGIN) :]))
        self._write(*HEALED)
        return SimpleNamespace(detail="Xid 79")

    def read(self, _context: object, *, since_ns: int = 0) -> Sequence[Event]:
        self._reads += 1
        if self._lost and self._reads == READS and self._comes_back:
            self._write(kinds.SPARE_READY)
        if self.ended and self.events[-1].kind != kinds.JOB_FINISHED:
            self._write(kinds.JOB_FINISHED)
        return self.events

    def _write(self, *written: str) -> None:
        for kind in written:
            detail = {"nodes": "i-0,i-1", "replaces": "i-1", "step": 1, "loss": 1.0, "world_size": 2}
            self.events.append(Event(time_ns=len(self.events), source="job", job="7", kind=kind, detail=detail))

    @contextmanager
    def step(self, what: str) -> Any:
        yield SimpleNamespace(update=lambda text: self.told.append(f"{what}: {text}"))


def rehearsed(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, value in {
        "jobs.check_fits": lambda *_, **__: None,
        "jobs.submit_any": lambda *_, **__: "7",
        "jobs.read_status": lambda _: None,
        "jobs.read_events": story.read,
        "jobs.summary": lambda *_, **__: "",
        "jobs.step": story.step,
        "jobs.inject": story.lose,
        "jobs.plant_fault": story.plant,
        "watching.read_events": story.read,
        "watching.job_outcome": lambda *_, **__: "COMPLETED" if story.ended else "",
        "watching.POLL_S": 0.0,
        "watching.EVENTS_WITHIN_S": 0.0,
    }.items():
        monkeypatch.setattr(f"holdfast.cli.rehearsal.{path}", value)
    context: Any = SimpleNamespace(orchestrator="slurm")
    rehearse_jobs(context, files=[Path("resilient.sbatch")], prepare=None)


def test_a_fault_is_planted_when_a_launcher_has_come_after_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(comes_back=True)

    rehearsed(story, monkeypatch)

    assert story.planted == [(*LOSS, kinds.SPARE_READY)]


def test_nothing_is_planted_in_a_job_that_ends_before_its_spare_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(comes_back=False)

    rehearsed(story, monkeypatch)

    assert story.planted == []
    assert "wait for the spare: the job ended before it was back" in story.told
