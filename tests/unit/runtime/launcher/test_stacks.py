"""Stacks on request: each rank writes its own, and one that does not answer has none."""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast_runtime.launcher.ranks import LocalSlots, stacks_of


class FakeProcess:
    def __init__(self, pid: int) -> None:
        self.pid = pid


class Connection:
    """To a rank that writes its stack at once, or to one that hangs."""

    def __init__(self, *, answers: bool) -> None:
        self.answers = answers

    def write(self, line: bytes) -> None:
        path = Path(next(value for value in json.loads(line).values() if str(value).endswith(".txt")))
        if self.answers:
            path.write_text("Current thread")


def test_a_rank_that_does_not_answer_has_an_empty_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_runtime.launcher.ranks.stacks.DUMP_S", 0.0)
    slots = LocalSlots(node=0, ranks=3, spares=0)
    for number, slot in enumerate(slots):
        slot.rank, slot.speaks = number, number < 2
        slot.process = FakeProcess(100 + number)  # type: ignore[assignment]
        slot.writer = Connection(answers=number == 0)  # type: ignore[assignment]

    assert asyncio.run(stacks_of(slots)) == {"100": "Current thread", "101": ""}
