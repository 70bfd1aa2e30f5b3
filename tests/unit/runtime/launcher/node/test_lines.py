"""The lines between launchers and the agent of their node: what was said comes back, and nothing else is taken."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_common import node_socket as wire

texts = st.text(max_size=20)
counts = st.integers(0, 1 << 40)
shares = st.one_of(st.none(), st.floats(0, 1))
ranks = st.builds(
    wire.RankReport,
    rank=st.integers(-1, 1000),
    pid=counts,
    step=counts,
    phase=texts,
    phase_s=st.floats(0, 1e6),
    busy=shares,
)
reports = st.builds(
    wire.LauncherReport,
    job=texts,
    task=texts,
    run=texts,
    node=counts,
    generation=counts,
    step=counts,
    spares=counts,
    ranks=st.lists(ranks, max_size=4).map(tuple),
)
commands = st.builds(wire.Command, id=texts, command=st.sampled_from(wire.COMMANDS), reason=texts)
answers = st.builds(
    wire.Answer,
    id=texts,
    command=st.sampled_from(wire.COMMANDS),
    outcome=st.sampled_from(wire.OUTCOMES),
    reason=texts,
    ranks=st.lists(counts, max_size=4).map(tuple),
    step=counts,
    steps_lost=counts,
    seconds=st.floats(0, 1e6),
)
REPORT = wire.LauncherReport(
    job="7",
    task="8",
    run="7",
    node=1,
    generation=2,
    step=30,
    spares=1,
    ranks=(wire.RankReport(rank=1, pid=40, step=30, phase="vote", phase_s=0.5),),
)


@given(st.one_of(reports, commands, answers))
def test_what_is_said_is_what_is_heard(message: wire.NodeMessage) -> None:
    line = wire.to_line(message)

    assert wire.from_line(line) == message
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    with pytest.raises(wire.NodeSocketError):
        wire.from_line(data)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "version must be 1"),
        ({"version": True}, "version must be 1"),
        ({"type": "hello"}, "type must be one of"),
        ({"job": 7}, "report.job must be a string"),
        ({"job": "x" * 129}, "at most 128 characters"),
        ({"step": -1}, "report.step must be a whole number from 0 on"),
        ({"step": 1.0}, "report.step must be a whole number"),
        ({"more": 1}, "report must be an object with job"),
        ({"ranks": [{"rank": 0}]}, "report.ranks must be an object with rank"),
        ({"ranks": [asdict(REPORT.ranks[0])] * 257}, "a list of at most 256"),
        ({"ranks": [{**asdict(REPORT.ranks[0]), "phase_s": float("nan")}]}, "phase_s must be a number of 0 or more"),
        ({"ranks": [{**asdict(REPORT.ranks[0]), "busy": 1.5}]}, "busy must be a number of 0 to 1"),
        ({"ranks": [{**asdict(REPORT.ranks[0]), "rank": -2}]}, "rank must be a whole number from -1 on"),
    ],
)
def test_a_line_that_is_not_of_the_protocol_is_refused_with_the_place(change: dict[str, object], why: str) -> None:
    values = {**json.loads(wire.to_line(REPORT)), **change}

    with pytest.raises(wire.NodeSocketError, match=why):
        wire.from_line(json.dumps(values).encode())


def test_a_line_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(wire.NodeSocketError, match="65536 bytes"):
        wire.from_line(b" " * (1 << 16) + b"{}")


def test_a_reason_that_is_too_long_is_cut_and_not_refused() -> None:
    line = wire.to_line(wire.Command(id="1", command="dump", reason="x" * 10_000))

    heard = wire.from_line(line)

    assert isinstance(heard, wire.Command)
    assert len(heard.reason) == wire.TEXT_LENGTH
