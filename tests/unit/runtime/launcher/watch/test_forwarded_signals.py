"""Signals for the program reach real processes that have a handler for them, and no others."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast_runtime.launcher.ranks import LocalSlot, LocalSlots, Process, forward, has_handler

CATCHES = "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))"
IGNORES = "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)"
DOES = "pass"


class Ranks:
    """Processes that run until their input ends, each in a place with a rank."""

    def __init__(self, *programs: str) -> None:
        self.slots = LocalSlots(node=0, ranks=len(programs) + 1, spares=0)
        self.started = [self._start(program, slot) for program, slot in zip(programs, self.slots, strict=False)]

    def _start(self, program: str, slot: LocalSlot) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", f"{program}; print(flush=True); __import__('sys').stdin.read()"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        slot.rank = 4 + slot.index
        slot.process = Process(process.pid, os.pidfd_open(process.pid), None)  # type: ignore[arg-type]
        return process

    def close(self) -> list[int]:
        for process, slot in zip(self.started, self.slots, strict=False):
            process.communicate()
            assert slot.process is not None
            os.close(slot.process.pidfd)
        return [process.returncode for process in self.started]


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    yield (found := Ranks(CATCHES, DOES, IGNORES))
    if found.started[0].poll() is None:
        found.close()


def test_a_signal_is_sent_to_ranks_with_a_handler_and_kills_none_of_the_others(ranks: Ranks) -> None:
    found = forward(signal.SIGUSR1, ranks.slots)

    assert found == ([4], [5, 6]), "the place without a process gets nothing"
    assert ranks.started[0].wait(10) == 3
    assert ranks.close() == [3, 0, 0]


def test_a_handler_for_one_signal_is_none_for_another(ranks: Ranks) -> None:
    pid = ranks.started[0].pid
    assert (has_handler(pid, signal.SIGUSR1), has_handler(pid, signal.SIGUSR2)) == (True, False)


def test_a_process_that_is_gone_has_no_handler() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert not has_handler(process.pid, signal.SIGUSR1)
