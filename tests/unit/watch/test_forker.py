"""The process that forks ranks is watched as they are: lost or stopped, it is made anew, and nothing is left behind."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from holdfast_runtime.launcher.ranks import PR_SET_CHILD_SUBREAPER, Forker, ForkError, end_orphans
from holdfast_runtime.launcher.zygote import Life, Request

PROGRAM = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()))"


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

    async def fork(self) -> int:
        """A process that has run to its end."""
        ours, theirs = socket.socketpair()
        life = Life()
        environment = {**os.environ, "HOLDFAST_LAUNCHER_PID": str(os.getpid())}
        told = self.folder / "told"
        request = Request(environment=environment, arguments=(str(self.folder / "program.py"), str(told)), module=False)
        with ours, theirs:
            pid = await self.forker.fork(request, [theirs.fileno(), 1, 2, life.descriptor])
            life.close()
            self.pids.add(pid)
            assert os.waitpid(pid, 0)[1] == 0
        assert told.read_text() == str(pid)
        return pid


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
    async with asyncio.timeout(60.0):
        while not condition():
            await asyncio.sleep(0.01)


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


def test_one_that_is_stopped_is_given_up_after_its_deadline_and_the_fork_goes_on_in_another(tmp_path: Path) -> None:
    async def test(forks: Forks) -> None:
        first = forks.forker.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)

        await forks.fork()

        assert len(forks.lost) == 1
        assert "does not answer" in forks.lost[0]

    run(lambda: Forks(tmp_path, answer_s=0.5), test)


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
