"""A stopped process is told from one that is busy, and from a launcher that was stopped itself."""

import os
import signal
import subprocess
import sys

from holdfast_runtime.control import StoppedProcesses, is_stopped


def test_a_process_is_stopped_between_sigstop_and_sigcont() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            assert not is_stopped(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert is_stopped(process.pid)
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
            assert not is_stopped(process.pid)
        finally:
            process.kill()
    assert not is_stopped(process.pid)


def test_one_that_was_seen_stopped_for_the_whole_time_is_told() -> None:
    stopped = StoppedProcesses(10.0)

    told = [stopped.look([7], now_s=float(now)) for now in range(12)]

    assert told[:10] == [[]] * 10
    assert told[10:] == [[7]] * 2


def test_one_that_went_on_in_between_begins_anew() -> None:
    stopped = StoppedProcesses(4.0)

    told = [stopped.look([] if now == 3 else [7], now_s=float(now)) for now in range(8)]

    assert told == [[]] * 8
    assert stopped.look([7], now_s=8.0) == [7]


def test_time_in_which_nobody_looked_does_not_count() -> None:
    stopped = StoppedProcesses(10.0)
    stopped.look([7], now_s=0.0)

    assert stopped.look([7], now_s=1000.0) == []
