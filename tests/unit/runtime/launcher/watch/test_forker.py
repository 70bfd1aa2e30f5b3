"""The process that forks ranks is watched as they are: lost or stopped, it is made anew, and nothing is left behind."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from holdfast_runtime.launcher.ranks import PR_SET_CHILD_SUBREAPER, Forker, ForkError, end_orphans
from holdfast_runtime.launcher.zygote import Request

PROGRAM = "import os, sys; print(os.getpid(), file=open(sys.argv[1], 'a'))"
SLOW = """
import os, pathlib, time

ONCE, FORKS = (pathlib.Path(__file__).with_name(name) for name in ("once", "forks"))

def forked():
    # In the process between, once it has forked the one that is to run the program.
    if os.getppid() == FORKER and ONCE.exists():
        ONCE.unlink()
        FORKS.touch()
        time.sleep(60.0)

FORKER = os.getpid()
os.register_at_fork(after_in_parent=forked)
"""


THREADED = """
import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


class Forks:
    """A process that forks, and what it has told."""

    def __init__(self, folder: Path, *, preload: tuple[str, ...] = ("json",), answer_s: float = 60.0) -> None:
        self.lost: list[str] = []
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)
        self.pids = children()
        """Those of the tests themselves, such as that of the CDK, are no orphans."""
        self.forker = Forker(
            preload=preload,
            start_s=60.0,
            answer_s=answer_s,
            on_lost=self.lost.append,
            known=lambda: {*self.pids},
        )

    @property
    def told(self) -> Path:
        """Where the program says that it runs."""
        return self.folder / "told"

    @property
    def request(self) -> Request:
        """For a process that runs it."""
        environment = {**os.environ, "HOLDFAST_LAUNCHER_PID": str(os.getpid())}
        arguments = str(self.folder / "program.py"), str(self.told)
        return Request(environment=environment, arguments=arguments, module=False)

    async def fork(self) -> int:
        """A process that has run to its end."""
        child = await self.forker.fork(self.request, out=1, err=2)
        with child.control:
            self.pids.add(child.pid)
            assert os.waitpid(child.pid, 0)[1] == 0
        assert [int(pid) for pid in self.told.read_text().split()] == [child.pid], "it has run once"
        return child.pid


@pytest.fixture(autouse=True)
def subreaper() -> Iterator[None]:
    """As a launcher is: what the process that forks has forked becomes a child of this one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def run(forks: Callable[[], Forks], test: Callable[[Forks], Awaitable[None]]) -> None:
    async def whole() -> None:
        made = forks()
        try:
            await made.forker.prepare()
            await test(made)
        finally:
            made.forker.close()

    asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    async def met() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(met(), 60.0)


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread of an earlier test may end meanwhile
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def test_one_that_is_killed_is_noticed_and_made_anew_before_anybody_asks(tmp_path: Path) -> None:
    async def test(forks: Forks) -> None:
        first = forks.forker.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)

        await until(lambda: bool(forks.lost))
        await forks.fork()

        assert forks.lost == ["the process that forks was killed by SIGKILL"]
        assert forks.forker.pid not in (first, None)

    run(lambda: Forks(tmp_path), test)


def test_threads_of_what_was_imported_are_nothing_to_tell_the_user_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python 3.12 and newer warn of a fork beside threads, and PyTorch has some."""
    (tmp_path / "threaded.py").write_text(THREADED)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))

    async def test(forks: Forks) -> None:
        await forks.fork()

    run(lambda: Forks(tmp_path, preload=("threaded",)), test)
    assert capfd.readouterr().err == ""


def test_one_that_is_stopped_is_given_up_after_its_deadline_and_the_fork_goes_on_in_another(tmp_path: Path) -> None:
    async def test(forks: Forks) -> None:
        first = forks.forker.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)

        await forks.fork()

        assert len(forks.lost) == 1
        assert "does not answer" in forks.lost[0]

    run(lambda: Forks(tmp_path, answer_s=0.5), test)


def test_a_process_that_is_forked_after_the_launcher_has_given_it_up_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the same place as the next one: it could take what the launcher says to that, and nobody watches it."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "once").touch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))

    async def test(forks: Forks) -> None:
        await forks.fork()

        assert (tmp_path / "forks").exists()
        assert len(forks.lost) == 1
        await until(lambda: children() <= forks.pids | {forks.forker.pid or 0})

    run(lambda: Forks(tmp_path, preload=("slow",), answer_s=1.0), test)


def test_a_process_that_the_launcher_does_not_wait_for_any_more_ends_before_it_runs_the_program(tmp_path: Path) -> None:
    async def test(forks: Forks) -> None:
        line = forks.forker._line
        assert line is not None
        ours, theirs = socket.socketpair()
        ours.close()
        with theirs:
            socket.send_fds(line, [forks.request.to_json()], [theirs.fileno(), 1, 2])
            pid = int(await asyncio.to_thread(line.recv, 64))

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        assert not forks.told.exists()

    run(lambda: Forks(tmp_path), test)


def test_a_child_that_nobody_was_told_of_is_ended_and_no_other() -> None:
    before = children()
    known, _ = sleeping(), sleeping()
    try:
        end_orphans(before | {known})

        assert children() - before == {known}
    finally:
        os.kill(known, signal.SIGKILL)
        os.waitpid(known, 0)


def sleeping() -> int:
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    return pid


def test_modules_that_cannot_be_imported_are_told_with_what_to_do(tmp_path: Path) -> None:
    async def test(_forks: Forks) -> None:
        raise AssertionError("it is not ready")

    with pytest.raises(ForkError, match="importing no_such_module ended with exit code 1; see the lines above"):
        run(lambda: Forks(tmp_path, preload=("no_such_module",)), test)


def test_a_failed_import_is_told_as_that_where_its_process_ends_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late.py").write_text(
        "import os, sys, time\nos.close(int(sys.argv[1]))\ntime.sleep(0.7)\nraise ImportError\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))

    async def test(_forks: Forks) -> None:
        raise AssertionError("it is not ready")

    with pytest.raises(ForkError, match="importing late ended with exit code 1; see the lines above"):
        run(lambda: Forks(tmp_path, preload=("late",)), test)
