"""The death of a process is known before its memory is given back, and only a death is taken for one."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast_runtime.launcher.ranks import give_way, holds_device, killed_by, wait_for_death
from holdfast_runtime.launcher.zygote import Life

MEMORY_BYTES = 400 << 20


class Child:
    """A process that holds its life, and does something then."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.life = Life()
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.life.hold()
            os.close(reader)
            kept = then()
            os.write(writer, b"1")
            signal.pause()
            del kept
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        self.pidfd = os.pidfd_open(self.pid)
        self.gone = False

    @property
    def has_ended(self) -> bool:
        """Whether it can be waited for."""
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def end(self) -> None:
        signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.gone = True
        os.close(self.pidfd)
        self.life.close()


def fill() -> bytearray:
    kept = bytearray(MEMORY_BYTES)
    kept[:: os.sysconf("SC_PAGE_SIZE")] = bytes([1]) * len(kept[:: os.sysconf("SC_PAGE_SIZE")])
    return kept


def leave() -> None:
    os._exit(3)


def start_thread() -> threading.Thread:
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread


def become_another() -> None:
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])


@pytest.fixture
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    made = Child(request.param)
    yield made
    made.end()


@pytest.mark.parametrize("child", [fill], indirect=True)
def test_a_death_is_known_while_the_memory_is_still_given_back(child: Child) -> None:
    seen: list[tuple[int, bool]] = []
    waiting = threading.Thread(
        target=wait_for_death,
        args=(child.life,),
        kwargs={"ended": lambda: child.gone, "dead": lambda: seen.append((killed_by(child.pid), child.has_ended))},
    )
    waiting.start()

    os.kill(child.pid, signal.SIGKILL)
    waiting.join(30.0)

    assert seen == [(signal.SIGKILL, False)]
    assert select.select([child.pidfd], [], [], 30.0)[0]


@pytest.mark.parametrize("child", [leave, become_another], indirect=True)
def test_a_process_that_ends_by_itself_or_becomes_another_is_not_killed(child: Child) -> None:
    assert child.life.wait()
    assert killed_by(child.pid) == 0


def test_one_that_has_not_begun_is_waited_for_until_it_is_gone() -> None:
    looks = iter([False, False, False, True])
    life, told = Life(), []

    wait_for_death(life, ended=lambda: next(looks), dead=lambda: told.append("dead"))

    life.close()
    assert told == []


def test_what_is_no_lock_any_more_is_waited_for_no_longer() -> None:
    life, told = Life(), []
    life._memory[16:20] = b"\xff" * 4  # its kind

    wait_for_death(life, ended=lambda: bool(told), dead=lambda: told.append("dead"))

    life.close()
    assert told == []


def test_one_that_is_gone_was_killed_by_nothing() -> None:
    assert killed_by(2**22 + 1) == 0


@pytest.mark.parametrize("child", [start_thread], indirect=True)
def test_all_threads_of_a_dying_process_give_way_to_those_that_recover(child: Child) -> None:
    threads = [int(task.name) for task in Path(f"/proc/{child.pid}/task").iterdir()]

    give_way(child.pid)

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert len(threads) == 2
    assert [os.getpriority(os.PRIO_PROCESS, thread) > usual for thread in threads] == [True, True]


def test_one_that_is_gone_need_not_give_way() -> None:
    give_way(2**22 + 1)


@pytest.mark.parametrize(
    ("opened", "holds"),
    [("/dev/nvidia0", True), ("/dev/neuron3", True), ("/dev/null", False), ("/fsx/nvidia", False)],
)
def test_an_accelerator_that_is_open_is_seen(tmp_path: Path, opened: str, holds: bool) -> None:
    folder = tmp_path / "7" / "fd"
    folder.mkdir(parents=True)
    (folder / "5").symlink_to(opened)

    assert holds_device(7, proc=tmp_path) is holds
    assert holds_device(8, proc=tmp_path)
