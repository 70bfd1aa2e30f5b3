"""A trial that is slower than on other nodes: once may be chance, each time is the node."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from holdfast_agent.burn_in import Trial, burn_in, slower

OTHERS = {"memory_gib_per_cpu_s": (0.7, 3)}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """What the memory's trials find, one after another; the others have no figures."""
    planned: list[Trial] = []
    tries: Iterator[Trial] = (planned.pop(0) for _ in iter(int, 1))
    room = import_module("holdfast_agent.burn_in.burn_in")
    monkeypatch.setattr(room, "memory", lambda **_: next(tries))
    for name in ("compute", "disk", "loopback"):
        monkeypatch.setattr(room, name, lambda **_: Trial("another"))
    return planned


def memory(rate: float, *problems: str) -> Trial:
    return Trial("memory", problems, {"memory_gib_per_cpu_s": rate})


def found(folder: Path) -> Trial:
    return next(trial for trial in burn_in(seconds=5.0, folder=folder, others=OTHERS) if trial.name == "memory")


def test_a_node_that_is_slow_once_is_as_fast_as_it_was_the_second_time(measured: list[Trial], tmp_path: Path) -> None:
    measured += [memory(0.3), memory(0.8)]

    assert found(tmp_path) == memory(0.8)
    assert not measured


def test_a_node_that_is_slow_each_time_is_slow(measured: list[Trial], tmp_path: Path) -> None:
    measured += [memory(0.3), memory(0.34), memory(0.1), memory(0.9)]

    best = found(tmp_path)

    assert best == memory(0.34)
    assert slower(best.figures, OTHERS)
    assert len(measured) == 1, "three tries are enough"


def test_a_node_that_is_fast_enough_is_tried_once(measured: list[Trial], tmp_path: Path) -> None:
    measured += [memory(0.5), memory(0.8)]

    assert found(tmp_path) == memory(0.5)


def test_what_is_wrong_stays_wrong_however_fast_it_is(measured: list[Trial], tmp_path: Path) -> None:
    measured += [memory(0.3), memory(0.8, "2 memory blocks differ from what was written")]

    assert found(tmp_path).problems


SHM = Path("/dev/shm")
"""In memory: its speed is the processor's."""
BUSY = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint('busy', flush=True)\nwhile True: pass\n"


@pytest.fixture
def core() -> Iterator[int]:
    """The only core that this test has."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield min(cores)
    os.sched_setaffinity(0, cores)


def test_a_disk_is_not_slow_where_the_machine_is_busy(core: int) -> None:
    """Its figures are by the clock, and it is broken where they are a tenth of those of others."""
    disk = import_module("holdfast_agent.burn_in.burn_in").disk
    calm = disk(seconds=0.4, folder=SHM).figures
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            command = [sys.executable, "-c", BUSY, str(core)]
            one = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(one.kill)
            assert one.stdout is not None
            one.stdout.readline()
        busy = disk(seconds=0.4, folder=SHM).figures
    assert {name: rate > 0.3 * calm[name] for name, rate in busy.items()} == dict.fromkeys(calm, True), (busy, calm)
