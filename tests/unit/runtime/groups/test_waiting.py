"""A wait of the script's own ends when it is time to leave, whatever it waits for. Works that do as gloo's do."""

import threading
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import OpType  # type: ignore[attr-defined]

from holdfast_runtime.groups import Waits

SEND = OpType.SEND


class Work:
    """One that ends after so many looks; ``None``: never."""

    def __init__(
        self, *, looks: int | None = 0, kind: OpType = OpType.ALLREDUCE, error: str = "", fails: bool = False
    ) -> None:
        self.left = looks
        self.fails = fails
        self.kind = kind
        self.error = error
        self.ended = threading.Event()

    def _get_op_type(self) -> int:
        return int(self.kind.value)

    def is_completed(self) -> bool:
        return self.left == 0

    def wait(self, limit: timedelta | None = None) -> bool:
        if self.fails:
            raise RuntimeError(self.error)
        if self.left is None and limit is None:
            self.ended.wait()
            return True
        if self.left is None or self.left > 0:
            self.left = None if self.left is None else self.left - 1
            if limit is not None:
                raise RuntimeError("Operation timed out!")
        if self.error:
            raise RuntimeError(self.error)
        return True


def test_a_collective_that_takes_long_is_waited_for() -> None:
    assert Waits(lambda: False).of_work(Work.wait, Work(looks=3)) is True


def test_a_collective_that_sleeps_on_is_left_when_it_is_time_to_leave() -> None:
    with pytest.raises(ConnectionError, match="time to leave"):
        Waits(lambda: True).of_work(Work.wait, Work(looks=None))


def test_the_error_of_a_collective_is_its_own() -> None:
    with pytest.raises(RuntimeError, match="connection reset"):
        Waits(lambda: True).of_work(Work.wait, Work(error="connection reset"))


def test_a_time_limit_of_the_script_is_the_script_s() -> None:
    with pytest.raises(RuntimeError, match="timed out"):
        Waits(lambda: True).of_work(Work.wait, Work(looks=None), timedelta(seconds=1))


def test_a_send_gets_no_time_limit_and_is_left_behind_all_the_same() -> None:
    leaving, asleep = threading.Event(), Work(looks=None, kind=SEND)
    waits = Waits(leaving.is_set)
    assert waits.of_work(Work.wait, Work(kind=SEND)) is True
    leaving.set()
    with pytest.raises(ConnectionError, match="time to leave"):
        waits.of_work(Work.wait, asleep)
    leaving.clear()

    assert waits.of_work(Work.wait, Work(kind=SEND)) is True, "the thread that sleeps is nobody's any more"
    asleep.ended.set()


@pytest.mark.parametrize("kind", [SEND, OpType.UNKNOWN])
def test_the_error_of_what_gets_no_time_limit_is_its_own(kind: OpType) -> None:
    """A reduce-scatter of gloo, which is of no known kind, never says that it has ended."""
    with pytest.raises(RuntimeError, match="connection reset"):
        Waits(lambda: True).of_work(Work.wait, Work(looks=None, kind=kind, error="connection reset", fails=True))


def test_a_functional_collective_that_sleeps_on_is_left() -> None:
    asleep = threading.Event()
    waited: list[str] = []

    def wait(_tensor: Any) -> None:
        waited.append(threading.current_thread().name)
        asleep.wait()

    with pytest.raises(ConnectionError, match="time to leave"):
        Waits(lambda: True).of_tensor(wait, torch.ones(1))
    assert waited == ["holdfast-wait"]
    asleep.set()
