"""Background processes, with real ones."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast.localcloud import ProcessError, processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def start_sleeper(home: Path) -> processes.Process:
    return processes.start(name="sleeper", argv=SLEEP, home=home, ready=lambda: True)


def test_a_started_process_is_found_by_name_and_ends_on_stop(tmp_path: Path) -> None:
    started = start_sleeper(tmp_path)

    assert processes.find(name="sleeper", home=tmp_path) == started
    assert processes.stop(name="sleeper", home=tmp_path)
    assert not started.alive()
    assert processes.find(name="sleeper", home=tmp_path) is None


def test_a_process_that_ends_while_starting_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="ended with exit code 3 while starting:\nno such bucket"):
        processes.start(
            name="broken",
            argv=[sys.executable, "-c", "import sys; print('no such bucket'); sys.exit(3)"],
            home=tmp_path,
            ready=lambda: False,
        )
    assert processes.find(name="broken", home=tmp_path) is None


def test_a_process_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match=r"slow was not ready after \d+ s and idle for the last \d+ s"):
        processes.start(name="slow", argv=SLEEP, home=tmp_path, ready=lambda: False, stall_s=1.0)
    assert processes.find(name="slow", home=tmp_path) is None


WORK = "import time\nwhile time.process_time() < 1.5: pass\n"


@pytest.mark.parametrize("work", [WORK, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORK!r}])\n"])
def test_a_process_that_works_is_waited_for_longer_than_one_that_sleeps(tmp_path: Path, work: str) -> None:
    """Bounded by its work, or a child's: it is ready after more of it than one that sleeps would be given time for."""
    ready = tmp_path / "ready"
    busy = f"{work}import pathlib, time\npathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)"
    started = processes.start(
        name="busy", argv=[sys.executable, "-c", busy], home=tmp_path, ready=ready.exists, stall_s=1.0
    )
    assert started.alive()
    started.stop()


@pytest.mark.parametrize(
    ("before", "after", "progress"),
    [
        ((1.0, 0), (1.5, 0), False),
        ((1.0, 0), (1.7, 0), True),
        ((1.0, 0), (1.0, 1 << 20), True),
        ((1.0, 500), (1.1, 5000), False),
    ],
)
def test_waiting_is_no_progress(before: tuple[float, int], after: tuple[float, int], progress: bool) -> None:
    first, second = (processes.WorkDone(cpu_s=cpu_s, transferred=nbytes) for cpu_s, nbytes in (before, after))
    assert second.is_beyond(first, stall_s=30.0) == progress


def test_a_stopped_process_is_told_from_one_that_runs(tmp_path: Path) -> None:
    started = start_sleeper(tmp_path)
    assert not started.stands_still()
    os.kill(started.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, started.pid, os.WSTOPPED | os.WNOWAIT)
    assert started.stands_still()
    assert started.alive()
    started.go_on()
    os.waitid(os.P_PID, started.pid, os.WCONTINUED | os.WNOWAIT)
    assert not started.stands_still()
    assert processes.stop(name="sleeper", home=tmp_path)


def test_a_killed_process_is_not_taken_for_alive(tmp_path: Path) -> None:
    started = start_sleeper(tmp_path)
    os.kill(started.pid, signal.SIGKILL)
    os.waitpid(started.pid, 0)

    assert processes.find(name="sleeper", home=tmp_path) is None


def test_a_recycled_pid_is_never_signalled(tmp_path: Path) -> None:
    """The record names a live pid of someone else: this test's own."""
    record = tmp_path / "run" / "sleeper.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"pid": os.getpid(), "start_ticks": 1, "endpoint": ""}))

    assert processes.find(name="sleeper", home=tmp_path) is None
    assert not processes.stop(name="sleeper", home=tmp_path)


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stubborn = (
        "import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); "
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(60)"
    )
    started = processes.start(name="stubborn", argv=[sys.executable, "-c", stubborn], home=tmp_path, ready=ready.exists)

    started.stop(timeout_s=0.3)

    assert not started.alive()


def test_an_unreadable_record_is_no_process(tmp_path: Path) -> None:
    record = tmp_path / "run" / "sleeper.json"
    record.parent.mkdir()
    record.write_text("{")

    assert processes.find(name="sleeper", home=tmp_path) is None
