"""Variables of a program that a process which takes over a rank has as at its start."""

import logging

import pytest

from holdfast_runtime.inprocess.member import Variables, missed


def test_only_what_all_ranks_that_have_changed_it_agree_on_is_named() -> None:
    own = {"noise": "0.0", "seen": "0", "done": "True"}
    changed = [{"noise": "0.5", "seen": "7", "done": "True", "late": "1"}, {"noise": "0.5", "seen": "9"}, {}]

    assert missed(own, changed) == ["noise is 0.0, and 0.5 on the other ranks"]


def test_a_process_that_has_run_a_step_names_what_has_changed_since() -> None:
    noise, rank, _count = 0.0, 1, 3
    variables = Variables()
    variables.begin()
    noise, _count, rate = 0.5, 4, 0.1

    assert variables.changed() == {"noise": "0.5"}
    assert (noise, rank, rate) == (0.5, 1, 0.1)


def test_a_process_logs_them_before_its_first_step(caplog: pytest.LogCaptureFixture) -> None:
    noise, variables = 0.0, Variables()
    variables.of_others = [{"noise": "0.5"}, {}]

    with caplog.at_level(logging.WARNING):
        variables.begin()
        variables.begin()

    assert noise == 0.0
    [message] = caplog.messages
    assert "noise is 0.0, and 0.5 on the other ranks" in message
    assert "give what decides about training to Run(state=...)" in message


def test_a_process_that_has_begun_a_step_does_not_log_what_others_change(caplog: pytest.LogCaptureFixture) -> None:
    noise, variables = 0.0, Variables()
    variables.begin()
    variables.of_others = [{"noise": "0.5"}]

    with caplog.at_level(logging.WARNING):
        variables.begin()

    assert (noise, caplog.messages) == (0.0, [])
