"""Every launcher learns when a generation has come together, from a few messages in a job of any size."""

from types import SimpleNamespace
from typing import Any

from launcher_context import context

from holdfast_runtime.launcher.links import AllSettled, Settled
from holdfast_runtime.launcher.node import Settling
from holdfast_runtime.membership import View


class Job:
    """Launchers whose messages arrive at once, and are counted."""

    def __init__(self, count: int) -> None:
        self.sent = [0] * count
        self.told: dict[int, list[int]] = {node: [] for node in range(count)}
        self._parts = [self._part(node) for node in range(count)]

    def _part(self, me: int) -> Settling:
        def send(node: int, message: Settled) -> None:
            self.sent[me] += 1
            self._parts[node].heard(me, message)

        def broadcast(message: Settled | AllSettled) -> None:
            for node, part in enumerate(self._parts):
                if node != me:
                    self.sent[me] += 1
                    part.heard(me, message) if isinstance(message, Settled) else part.heard_all(message)

        links: Any = SimpleNamespace(send=send, broadcast=broadcast)
        slots: Any = SimpleNamespace(node=me, in_view=[SimpleNamespace(index=0)], in_process=True)
        settled = self.told[me].append
        return Settling(context(slots, links=links), instance=f"i-{me}", settled=lambda view, said: settled(len(said)))

    def install(self, view: View, *nodes: int) -> None:
        for node in nodes or range(len(self._parts)):
            self._parts[node].installed(view)

    def train(self, *nodes: int) -> None:
        for node in nodes or range(len(self._parts)):
            self._parts[node].moved(0, "forward")


def test_all_know_what_each_has_said_once_all_have_said_it() -> None:
    job = Job(12)
    job.install(View(generation=1, nodes=(0,) * 12))
    job.train(*range(11))
    assert not any(job.told.values())

    job.train(11)

    assert job.told == {node: [12] for node in range(12)}


def test_one_gathers_and_each_other_sends_one_message() -> None:
    job = Job(200)
    job.install(View(generation=1, nodes=(-1, *(0,) * 199)), *range(1, 200))
    job.train(*range(1, 200))

    assert job.sent[2:] == [1] * 198
    assert all(job.told[node] == [199] for node in range(1, 200))


def test_what_is_heard_before_the_view_is_there_counts_with_it() -> None:
    job = Job(12)
    job.install(View(generation=1, nodes=(0,) * 12), *range(1, 12))
    job.train(*range(1, 12))

    job.install(View(generation=1, nodes=(0,) * 12), 0)
    job.train(0)

    assert job.told == {node: [12] for node in range(12)}
