"""What a launcher of an elastic job makes of SIGTERM."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from holdfast_common import node_socket
from holdfast_runtime.launcher.generation import Notice

LATER, BEGUN, FAILED, REFUSED = "later", "begun", "failed", "refused"


class Node:
    """Answers one after the other, the last for ever; time passes at once."""

    def __init__(self, *answers: str, elastic: bool = True) -> None:
        self.answers, self.asked = [*answers], 0
        self.ended: list[int] = []
        self.said: list[str] = []
        self.begun = False
        part: Any = self
        self.notice = Notice(
            ending=part, journal=part, follows=lambda: elastic, leave=self.leave, later=lambda _, call: call()
        )

    def signalled(self, number: int) -> None:
        self.ended.append(number)
        self.begun = True

    def say(self, text: str) -> None:
        self.said.append(text)

    def leave(self, command: node_socket.Command, answered: Callable[[node_socket.Answer], None]) -> None:
        self.asked += 1
        outcome: Any = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answered(node_socket.Answer(id=command.id, command=command.command, outcome=outcome, reason="why"))


def test_a_node_that_can_leave_leaves_and_the_job_goes_on() -> None:
    node = Node(BEGUN)
    node.notice.signalled(signal.SIGTERM)
    assert (node.asked, node.ended) == (1, [])


def test_a_node_that_cannot_leave_yet_tries_again_until_it_can() -> None:
    node = Node(LATER, LATER, LATER, BEGUN)
    node.notice.signalled(signal.SIGTERM)
    assert (node.asked, node.ended) == (4, [])
    assert node.said == ["SIGTERM is a notice to leave", "this node cannot leave the job yet: why"]


@pytest.mark.parametrize("answers", [(LATER,), (REFUSED,), (LATER, FAILED), (BEGUN,)])
def test_a_node_that_cannot_leave_or_is_told_twice_ends_the_job(answers: tuple[str, ...]) -> None:
    node = Node(*answers)
    node.notice.signalled(signal.SIGTERM)
    if answers == (BEGUN,):
        node.notice.signalled(signal.SIGTERM)
    assert node.ended == [signal.SIGTERM]


@pytest.mark.parametrize(("number", "elastic"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_no_other_signal_is_a_notice_nor_is_one_to_a_job_that_keeps_its_size(number: int, elastic: bool) -> None:
    node = Node(BEGUN, elastic=elastic)
    node.notice.signalled(number)
    assert (node.asked, node.ended) == (0, [number])
