"""``holdfast rehearse`` of an elastic job: what it is asked for, and what of its events is waited for."""

from collections.abc import Sequence

import pytest
import rehearsing
from rehearsing import rehearsed

from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds

IDS = ("i-0", "i-1", "i-2", "i-3", "i-4")
FILE = "elastic.sbatch"


class Story(rehearsing.Story):
    """An elastic job's events, which come as it is asked for sizes."""

    def __init__(self, sizes: str, *, deaf: bool = False) -> None:
        super().__init__()
        self.asked: list[int] = []
        self._sizes, self._deaf = sizes, deaf
        self._starts(kinds.JOB_STARTED, max(map(int, sizes.split(","))), step=0)

    @property
    def outcome(self) -> str:
        return "COMPLETED" if self._deaf else ""

    def ask(self, _context: object, *, job: str, nodes: int) -> None:
        assert job == rehearsing.JOB
        self.asked.append(nodes)
        if not self._deaf:
            self._starts(kinds.JOB_RESUMED, nodes, step=10 * len(self.asked))

    def read(self, _context: object, *, since_ns: int = 0) -> Sequence[Event]:
        finished = Event(time_ns=10**6, source="job", job=rehearsing.JOB, kind=kinds.JOB_FINISHED)
        return [*self.events, finished] if len(self.asked) == 2 or self._deaf else self.events

    def _starts(self, kind: str, nodes: int, *, step: int) -> None:
        sizes = {"sizes": self._sizes} if self._sizes else {}
        self.write(kind, world_size=8 * nodes, nodes=",".join(IDS[:nodes]), step=step, **sizes)
        self.write(kinds.JOB_PROGRESS, step=step + 5, loss=1.0)


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [("2,3,4", [2, 4]), ("3,4,5", [3, 5]), ("1,5", [1, 5]), ("4,5", [4, 5])],
    ids=["two-fewer", "two-fewer-of-five", "the-next-below", "fewer-than-two"],
)
def test_two_nodes_are_taken_and_given_back_while_it_trains(
    sizes: str, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(sizes)

    rehearsed(story, monkeypatch, file=FILE, resizing__ask_for_size=story.ask)

    assert story.asked == asked
    taken = asked[1] - asked[0]
    assert f"take {taken} nodes of the job: {asked[0]} nodes, without a restart" in story.told
    assert f"give them back: {asked[1]} nodes, without a restart" in story.told
    assert not any(told.startswith("destroy") for told in story.told)


def test_a_job_that_ends_before_it_has_changed_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story("2,3,4", deaf=True)

    rehearsed(story, monkeypatch, file=FILE, resizing__ask_for_size=story.ask)

    assert story.asked == [2]
    assert "take 2 nodes of the job: the job ended before it trained on 2 nodes" in story.told


def test_a_job_that_sbatch_does_not_submit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="sbatch submits nothing; remove its option --test-only"):
        rehearsed(Story("2,3,4"), monkeypatch, file=FILE, jobs__submit_any=lambda *_, **__: "")
