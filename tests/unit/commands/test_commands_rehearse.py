"""``holdfast rehearse`` of an elastic job: what it is asked for, and what of its events is waited for."""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.rehearsal import rehearse_jobs
from holdfast_common import Event, kinds

IDS = ("i-0", "i-1", "i-2", "i-3", "i-4")


class Story:
    """An elastic job's events, which come as it is asked for sizes."""

    def __init__(self, sizes: str, *, deaf: bool = False) -> None:
        self.asked: list[int] = []
        self.told: list[str] = []
        self._sizes, self._deaf = sizes, deaf
        self.events: list[Event] = []
        self._starts(kinds.JOB_STARTED, max(map(int, sizes.split(","))), step=0)

    def ask(self, _context: object, *, job: str, nodes: int) -> None:
        assert job == "7"
        self.asked.append(nodes)
        if not self._deaf:
            self._starts(kinds.JOB_RESUMED, nodes, step=10 * len(self.asked))

    def _starts(self, kind: str, nodes: int, *, step: int) -> None:
        where = ",".join(IDS[:nodes])
        self._write(
            kind, world_size=8 * nodes, nodes=where, step=step, **({"sizes": self._sizes} if self._sizes else {})
        )
        self._write(kinds.JOB_PROGRESS, step=step + 5, loss=1.0)

    def _write(self, kind: str, **detail: Any) -> None:
        self.events.append(Event(time_ns=len(self.events), source="job", job="7", kind=kind, detail=detail))

    def read(self, _context: object, *, since_ns: int) -> Sequence[Event]:
        finished = Event(time_ns=10**6, source="job", job="7", kind=kinds.JOB_FINISHED)
        return [*self.events, finished] if len(self.asked) == 2 or self._deaf else self.events

    @contextmanager
    def step(self, what: str) -> Any:
        yield SimpleNamespace(update=lambda text: self.told.append(f"{what}: {text}"))


def rehearsed(story: Story, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    for path, value in {
        "jobs.check_fits": lambda *_, **__: None,
        "jobs.submit_any": lambda *_, **__: "7",
        "jobs.read_status": lambda _: None,
        "jobs.summary": lambda *_, **__: "",
        "jobs.step": story.step,
        "resizing.step": story.step,
        "resizing.ask_for_size": story.ask,
        "watching.read_events": story.read,
        "watching.job_outcome": lambda *_, **__: "COMPLETED" if story._deaf else "",
        "watching.POLL_S": 0.0,
        "watching.EVENTS_WITHIN_S": 0.0,
    }.items():
        monkeypatch.setattr(f"holdfast.cli.rehearsal.{path}", value)
    context: Any = SimpleNamespace(orchestrator="slurm")
    return rehearse_jobs(context, files=[Path("elastic.sbatch")], prepare=None)


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [("2,3,4", [2, 4]), ("3,4,5", [3, 5]), ("1,5", [1, 5]), ("4,5", [4, 5])],
    ids=["two-fewer", "two-fewer-of-five", "the-next-below", "fewer-than-two"],
)
def test_two_nodes_are_taken_and_given_back_while_it_trains(
    sizes: str, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(sizes)

    rehearsed(story, monkeypatch)

    assert story.asked == asked
    taken = asked[1] - asked[0]
    assert f"take {taken} nodes of the job: {asked[0]} nodes, without a restart" in story.told
    assert f"give them back: {asked[1]} nodes, without a restart" in story.told
    assert not any(told.startswith("destroy") for told in story.told)


def test_a_job_that_ends_before_it_has_changed_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story("2,3,4", deaf=True)

    rehearsed(story, monkeypatch)

    assert story.asked == [2]
    assert "take 2 nodes of the job: the job ended before it trained on 2 nodes" in story.told
