"""Which lines ``holdfast logs`` shows, and the command line of ``holdfast ssh``."""

import pytest

from holdfast.cli.commands.cluster.ssh import command_line
from holdfast.cli.deployed import LineChoice, parse_drained
from holdfast.cli.terminal import CommandError

AT_NS = 1_795_881_600 * 1_000_000_000  # 2026-11-28T16:00Z
LINES = ["begin", "2026-11-28 15:59:59,123 a", "  of a", "2026-11-28T16:00:00Z b", "[2026-11-28 16:00:01] c", "end"]


def test_lines_are_chosen_by_pattern_and_then_from_the_end() -> None:
    choice = LineChoice.parse(tail=1, since_ns=None, grep="^a")
    assert choice.of(["a 1", "b", "a 2", "c"]) == ["a 2"]
    assert LineChoice.parse(tail=0, since_ns=None, grep=None).of(["a"]) == []


def test_lines_that_begin_with_a_time_are_chosen_by_it_with_those_that_follow() -> None:
    assert LineChoice(since_ns=AT_NS).of(LINES) == LINES[3:]
    assert LineChoice(since_ns=AT_NS).of([]) == []
    assert LineChoice(since_ns=2 * AT_NS).of(LINES) == []


def test_lines_without_a_time_cannot_be_chosen_by_one() -> None:
    with pytest.raises(CommandError, match="no line of this output begins with a time; use --tail N"):
        LineChoice(since_ns=AT_NS).of(["a", "b"])


def test_lines_of_cloudwatch_have_times_beside_them() -> None:
    assert LineChoice(since_ns=AT_NS).of_timed([(AT_NS - 1, "a"), (AT_NS, "b")]) == ["b"]


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match=r"got --grep '\[', no regular expression"):
        LineChoice.parse(tail=None, since_ns=None, grep="[")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["/bin/bash", "-l"]),
        (["a; b"], ["/bin/bash", "-c", "a; b"]),
        (["sinfo", "-h"], ["/bin/bash", "-c", "sinfo -h"]),
    ],
)
def test_a_command_line_is_one_for_the_shell_of_the_node_as_with_ssh(words: list[str], expected: list[str]) -> None:
    assert command_line(words) == expected


def test_a_drained_node_has_its_reason_and_the_command_that_resumes_it() -> None:
    told = "N|ip-1|idle|none\nN|ip-2|drained|bad|cable\nN|ip-3|drained|Action:Replace\nJ|7|RUNNING|x|0|None|n\n"
    command = "holdfast ssh ip-0 -- scontrol update nodename=ip-2 state=resume"
    assert parse_drained(told, controller="ip-0") == {"ip-2": f"bad|cable; resume it with: {command}"}
