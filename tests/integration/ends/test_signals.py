"""Real signals to real launchers: which of them the ranks get, and which end what."""

import importlib.util
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elastic_jobs import elastic, written
from killing import run_job
from plain_launchers import Launchers, alive
from waiting import eventually

from holdfast_runtime.launcher.node import ask

pytestmark = pytest.mark.e2e


@pytest.fixture
def launchers(tmp_path: Path) -> Iterator[Launchers]:
    found = Launchers(tmp_path)
    yield found
    found.close()


def catching(launchers: Launchers) -> list[int]:
    """The processes of ranks 0, 1 and 2, once all but rank 1 have a handler for SIGUSR1 and SIGUSR2."""
    eventually(lambda: len([*launchers.folder.glob("catches*")]) == 3)
    return [int(pid) for *_, pid in sorted(launchers.started())]


def test_slurm_s_signal_reaches_the_ranks_with_a_handler_and_kills_nothing(launchers: Launchers) -> None:
    launcher = launchers.plain("catch", "--nproc-per-node", "3")
    ranks = catching(launchers)
    forker = ask(launchers.folder / "0.sock")["forker"]

    os.kill(launcher.pid, signal.SIGUSR1)
    eventually(lambda: launchers.received() == ["0 SIGUSR1", "2 SIGUSR1"])
    os.killpg(launcher.pid, signal.SIGUSR2)  # also to the process that forks, as with proctrack/pgid
    eventually(lambda: len(launchers.received()) == 4)

    assert launchers.received() == ["0 SIGUSR1", "0 SIGUSR2", "2 SIGUSR1", "2 SIGUSR2"]
    assert ask(launchers.folder / "0.sock")["forker"] == forker
    assert all(map(alive, ranks))
    launcher.send_signal(signal.SIGTERM)
    _, said = launcher.communicate(timeout=20)
    assert launcher.returncode == 128 + signal.SIGTERM
    line = "received SIGUSR1: sent to ranks [0, 2]; ranks [1] have no handler for it and do not get it"
    assert said.count(line) == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT], ids=["HUP", "QUIT"])
def test_hangup_and_quit_end_the_job_as_sigterm_does(launchers: Launchers, number: signal.Signals) -> None:
    # Whoever runs the tests may have been started by nohup.
    default = ("env", f"--default-signal={number.name.removeprefix('SIG')}")
    launcher = launchers.plain("catch", "--nproc-per-node", "3", before=default)
    ranks = catching(launchers)

    os.kill(launcher.pid, number)
    _, said = launcher.communicate(timeout=20)

    assert launcher.returncode == 128 + number, said
    assert launchers.received() == ["0 SIGTERM", "1 SIGTERM", "2 SIGTERM"]
    assert not any(map(alive, ranks))
    assert f"the job ends: node 0 got {number.name}" in said


def test_under_nohup_a_hangup_ends_neither_the_launcher_nor_its_ranks(launchers: Launchers) -> None:
    launcher = launchers.plain("catch", "--nproc-per-node", "3", before=("nohup",))
    ranks = catching(launchers)

    for pid in (launcher.pid, *ranks):
        os.kill(pid, signal.SIGHUP)
    os.kill(launcher.pid, signal.SIGUSR1)
    eventually(lambda: len(launchers.received()) == 2)

    assert launcher.poll() is None
    assert all(map(alive, ranks))
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=20)
    assert launcher.returncode == 128 + signal.SIGTERM


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.timeout(300)
def test_a_second_sigterm_ends_the_launcher_that_leaves_and_the_job_goes_on(tmp_path: Path) -> None:
    job = elastic(
        sizes="2,3",
        nodes=3,
        steps=8,
        every=1,
        pause_s=1.0,
        timeout_s=120.0,
        restart_launchers=False,
        until=terminated_twice(tmp_path, node=2),
    )

    outcome = run_job(tmp_path, job)

    assert outcome.codes == (0, 0, 128 + signal.SIGTERM), outcome.text[-3000:]
    assert "node 2: received SIGTERM: handing over the ranks of this node" in outcome.text
    assert "node 2: received SIGTERM while leaving: this launcher and its ranks exit at once" in outcome.text
    assert "the job ends" not in outcome.text
    assert "Traceback" not in outcome.text
    steps = written(tmp_path)
    assert steps[7][-1].size == 2
    assert sorted(steps) == [*range(8)]


def terminated_twice(folder: Path, *, node: int) -> Callable[[], bool]:
    """For ``Job.until``: sends SIGTERM to a launcher that has done two steps, and again while it leaves."""
    sent: list[float] = []

    def look() -> bool:
        due = time.monotonic() > sent[0] + 1.2 if sent else max(written(folder), default=-1) >= 1
        if due and len(sent) < 2:
            rank = ask(folder / f"{node}.sock")["processes"][0]["pid"]
            launcher = int(Path(f"/proc/{rank}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(launcher, signal.SIGTERM)
            sent.append(time.monotonic())
        return False

    return look
