"""``holdfast rehearse`` where agents act: a fault is planted only when the job has a spare again."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import rehearsing

from holdfast.cli.rehearsal import end_late_tasks
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds

BEGIN = (kinds.JOB_STARTED, kinds.SPARE_READY, kinds.CHECKPOINT_SAVED)
LOSS = (kinds.NODE_LOST, kinds.VIEW_COMMITTED, kinds.JOB_RESUMED, kinds.NODE_REPLACED)
HEALED = (kinds.HANDED_OVER, kinds.NODE_REPLACED, kinds.JOB_FINISHED)
OF_NODES = {kinds.NODE_LOST, kinds.NODE_REPLACED}
READS = 4
"""Looks after the loss until the launcher of the new node is there."""


class Story(rehearsing.Story):
    """A job that begins with a spare, loses a node, and has a spare again some looks later, or ends without one."""

    def __init__(self, *, comes_back: bool) -> None:
        super().__init__()
        self.planted: list[tuple[str, ...]] = []
        self.forged: set[str] = set()
        """Of OF_NODES, by the job."""
        self._comes_back, self._reads, self._lost = comes_back, 0, False
        self.write(kinds.AGENT_STARTED, source="agent", mode="act")
        self._writes(*BEGIN)

    @property
    def outcome(self) -> str:
        return "COMPLETED" if self._lost and not self._comes_back and self._reads > READS else ""

    def lose(self, *_: Any, **__: Any) -> str:
        self._lost, self._reads = True, 0
        self._writes(*LOSS)
        return "i-1"

    def plant(self, *_: Any, **__: Any) -> Any:
        self.planted.append(tuple(event.kind for event in self.events[1 + len(BEGIN) :]))
        self._writes(*HEALED)
        return SimpleNamespace(detail="Xid 79")

    def read(self, _context: object, *, since_ns: int = 0) -> Sequence[Event]:
        self._reads += 1
        if self._lost and self._reads == READS and self._comes_back:
            self._writes(kinds.SPARE_READY)
        if self.outcome and self.events[-1].kind != kinds.JOB_FINISHED:
            self._writes(kinds.JOB_FINISHED)
        return self.events

    def _writes(self, *written: str) -> None:
        for kind in written:
            source = "control-plane" if kind in OF_NODES - self.forged else "job"
            self.write(kind, source=source, nodes="i-0,i-1", replaces="i-1", step=1, loss=1.0, world_size=2)


def rehearsed(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsing.rehearsed(
        story, monkeypatch, file="resilient.sbatch", jobs__inject=story.lose, jobs__plant_fault=story.plant
    )


def test_a_fault_is_planted_when_a_launcher_has_come_after_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(comes_back=True)

    rehearsed(story, monkeypatch)

    assert story.planted == [(*LOSS, kinds.SPARE_READY)]
    assert "destroy a node under the job: i-1" in story.told


def test_nothing_is_planted_in_a_job_that_ends_before_its_spare_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(comes_back=False)

    rehearsed(story, monkeypatch)

    assert story.planted == []
    assert "wait for the spare: the job ended before the spare was ready" in story.told


@pytest.mark.parametrize(
    ("kind", "what"), [(kinds.NODE_LOST, "the detection of the lost node"), (kinds.NODE_REPLACED, "the replacement")]
)
def test_a_loss_and_a_replacement_that_only_the_job_reports_are_none(
    monkeypatch: pytest.MonkeyPatch, kind: str, what: str
) -> None:
    story = Story(comes_back=True)
    story.forged = {kind}
    monkeypatch.setattr("holdfast.cli.rehearsal.watching.JOB_TIMEOUT_S", 0.05)

    with pytest.raises(CommandError, match=f"waited 0.05 s for {what}"):
        rehearsed(story, monkeypatch)

    assert story.planted == []


@pytest.mark.parametrize(("outcome", "cancelled"), [("", [["scancel", "--quiet", "7"]]), ("COMPLETED", [])])
def test_a_task_that_slurm_begins_again_at_the_end_is_cancelled(
    outcome: str, cancelled: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    for name, value in {
        "job_outcome": lambda *_, **__: outcome,
        "controller_hostname": lambda _: "head",
        "run": lambda *_, argv, **__: ran.append(argv),
        "LATE_S": 0.0,
    }.items():
        monkeypatch.setattr(f"holdfast.cli.rehearsal.jobs.{name}", value)
    context: Any = None
    end_late_tasks(context, job="7")

    assert ran == cancelled
