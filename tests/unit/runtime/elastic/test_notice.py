"""What a launcher makes of SIGTERM, and of signals that are as it."""

import signal
from collections.abc import Callable
from typing import Any

import pytest
from launcher_context import context

from holdfast_common import node_socket
from holdfast_runtime.launcher.generation import Notice

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LATER, BEGUN, FAILED, REFUSED = "later", "begun", "failed", "refused"


class Node:
    """Answers one after the other, the last for ever; time passes at once, or not at all."""

    def __init__(
        self,
        *answers: str,
        elastic: bool = True,
        alone: bool = False,
        leaving: bool = False,
        passes: bool = True,
    ) -> None:
        self.answers, self.asked = [*answers], 0
        self.leaving = leaving
        self.ended: list[int] = []
        self.departed: list[int] = []
        self.said: list[str] = []
        self.begun = False
        part: Any = self
        self.notice = Notice(
            context(
                part,
                ending=part,
                journal=part,
                timer=lambda _, call: call() if passes else None,
                sizes=(2, 3) if elastic else (),
                on_sigterm="leave" if alone else None,
            ),
            leave=self.leave,
        )

    def signalled(self, number: int) -> None:
        self.ended.append(number)
        self.begun = True

    def depart(self, code: int, _reason: str, *, at_once: bool) -> None:
        assert at_once
        self.departed.append(code)
        self.begun = True

    def say(self, text: str) -> None:
        self.said.append(text)

    tell = say

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
    assert node.said == [
        "received SIGTERM: handing over the ranks of this node",
        "this node cannot leave the job yet: why",
    ]


@pytest.mark.parametrize("answers", [(LATER,), (REFUSED,), (LATER, FAILED)])
def test_a_node_that_cannot_leave_ends_the_job(answers: tuple[str, ...]) -> None:
    node = Node(*answers)
    node.notice.signalled(signal.SIGTERM)
    assert (node.ended, node.departed) == ([signal.SIGTERM], [])


@pytest.mark.parametrize("first", ENDING)
@pytest.mark.parametrize("second", ENDING)
def test_a_second_signal_ends_the_launcher_that_leaves_and_not_the_job(first: int, second: int) -> None:
    node = Node(BEGUN)
    node.notice.signalled(first)
    node.notice.signalled(second)
    assert (node.asked, node.ended, node.departed) == (1, [], [128 + second])


def test_a_signal_that_a_scheduler_sends_and_a_job_script_forwards_is_one() -> None:
    node = Node(BEGUN, passes=False)
    node.notice.signalled(signal.SIGTERM)
    node.notice.signalled(signal.SIGTERM)
    assert (node.asked, node.ended, node.departed) == (1, [], [])


@pytest.mark.parametrize("elastic", [True, False])
def test_a_signal_ends_a_launcher_that_leaves_for_another_reason_and_not_the_job(elastic: bool) -> None:
    node = Node(BEGUN, elastic=elastic, leaving=True)
    node.notice.signalled(signal.SIGTERM)
    assert (node.asked, node.ended, node.departed) == (0, [], [128 + signal.SIGTERM])


@pytest.mark.parametrize("number", ENDING)
def test_hangup_and_quit_are_a_notice_as_sigterm_is(number: int) -> None:
    node = Node(REFUSED)
    node.notice.signalled(number)
    assert (node.asked, node.ended) == (1, [number])


@pytest.mark.parametrize(("number", "elastic"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_no_other_signal_is_a_notice_nor_is_one_to_a_job_that_keeps_its_size(number: int, elastic: bool) -> None:
    node = Node(BEGUN, elastic=elastic)
    node.notice.signalled(number)
    assert (node.asked, node.ended) == (0, [number])


@pytest.mark.parametrize("answers", [(LATER,), (REFUSED,), (LATER, FAILED)])
def test_a_launcher_of_a_pod_exits_alone_if_its_ranks_cannot_go_to_others(answers: tuple[str, ...]) -> None:
    node = Node(*answers, elastic=False, alone=True)
    node.notice.signalled(signal.SIGTERM)
    assert (node.ended, node.departed) == ([], [128 + signal.SIGTERM])


def test_a_launcher_of_a_pod_hands_its_ranks_over_in_a_job_that_keeps_its_size() -> None:
    node = Node(LATER, BEGUN, elastic=False, alone=True)
    node.notice.signalled(signal.SIGTERM)
    assert (node.asked, node.ended, node.departed) == (2, [], [])
