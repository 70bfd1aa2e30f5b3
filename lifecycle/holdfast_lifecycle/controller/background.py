"""Background work that outlives the lifecycle, once at a time on a node."""

import contextlib
import fcntl
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

_DESCRIPTORS = 1024


def is_running(lock: Path) -> bool:
    with contextlib.suppress(OSError), lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def leave_running(work: Callable[[], None], *, lock: Path, log: Path) -> None:
    """Start the work in its own process group, unless it runs already; only its log stays open."""
    for path in (lock, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    began, begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        _work(work, lock, log, begun)
    os.close(begun)
    os.waitpid(pid, 0)
    os.read(began, 1)
    os.close(began)


def _work(work: Callable[[], None], lock: Path, log: Path, begun: int) -> None:
    code = 1
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for descriptor, source in enumerate((nothing, output, output)):
            os.dup2(source, descriptor)
        for descriptor in range(3, _DESCRIPTORS):
            if descriptor != begun:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        # What Python has as output may have been a descriptor that is closed now.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(begun)
        work()
        code = 0
    except BlockingIOError:
        code = 0
    except BaseException:  # noqa: BLE001  the end of a process: whatever it was goes to the log
        traceback.print_exc()
    finally:
        os._exit(code)
