"""
Start launchers as forks of this process, which has imported torch once: a job costs 1.5 s of CPU, not 6.

Launchers, ranks and spares are processes of their own, and the product's code runs in all of them. One thing differs
from ``holdfast-run``: the process that forks ranks is a fork of its launcher, with all its descriptors closed.
``GRID_COLD=1`` starts them as a user does.
"""

import atexit
import ctypes
import gc
import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from killing import PYTHONPATH
from sharded_jobs import PRELOADED

COLD = os.environ.get("GRID_COLD") == "1"
FORKER = "holdfast_runtime.launcher.ranks.forker"
ZYGOTE = "holdfast_runtime.launcher.zygote.__main__"
PRELOAD = (
    *PRELOADED.split(","),
    "torch.optim.swa_utils",
    "torch.nn.utils.prune",
    "torch.nn.utils.parametrizations",
    "holdfast_runtime.inprocess",
)
MODULES = (*PRELOAD, "holdfast_runtime.launcher.node", FORKER, ZYGOTE)
HUNG = -99
_loaded: list[str] = []


class Fork:
    """A child process, with the methods of ``subprocess.Popen`` that are used here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout if timeout is not None else 60.0)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", timeout or 60.0)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def run_launchers(
    commands: Sequence[Sequence[str]], *, environments: Sequence[Mapping[str, str]], log: Path, timeout_s: float
) -> tuple[int, ...]:
    """
    Run a launcher of each command until all have ended; their exit codes, ``HUNG`` for one that was killed at the end.

    Args:
        commands: Arguments of ``holdfast-run``.
        environments: The whole environment of each.
    """
    with log.open("ab") as file:
        started: list[Any] = [
            _start(command, environment, file.fileno())
            for command, environment in zip(commands, environments, strict=True)
        ]
        end = time.monotonic() + timeout_s
        try:
            while any(one.poll() is None for one in started) and time.monotonic() < end:
                time.sleep(0.02)
            return tuple(HUNG if one.poll() is None else one.poll() for one in started)
        finally:
            for one in started:
                one.kill()
                one.wait()


def environment_of(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a launcher."""
    return {**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": "1", **more}


def _start(command: Sequence[str], environment: Mapping[str, str], log: int) -> Any:
    if COLD:
        whole = [sys.executable, "-m", "holdfast_runtime.launcher", *command]
        return subprocess.Popen(whole, stdout=log, stderr=log, env=dict(environment), preexec_fn=_die_with_parent)
    _load()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _become(lambda: _launcher(command), environment=environment, log=log, keep=(), parent=parent)
    return Fork(pid)


def _launcher(command: Sequence[str]) -> int:
    from holdfast_runtime.launcher.node import main

    class Forks:
        """In the place of ``subprocess`` in the file that starts the process that forks."""

        TimeoutExpired = subprocess.TimeoutExpired
        Popen = staticmethod(_zygote)

    vars(sys.modules[FORKER])["subprocess"] = Forks
    return main(command)


def _zygote(command: Sequence[str], *, pass_fds: Sequence[int]) -> Fork:
    """The process that forks, from its command: python -m module arguments."""
    arguments = ["zygote", *command[3:]]
    parent = os.getpid()

    def serve() -> int:
        sys.argv[:] = arguments
        vars(sys.modules[ZYGOTE])["main"]()
        return 0

    pid = os.fork()
    if not pid:
        _become(serve, environment=os.environ, log=1, keep=pass_fds, parent=parent)
    return Fork(pid)


def _become(
    run: Callable[[], int], *, environment: Mapping[str, str], log: int, keep: Sequence[int], parent: int
) -> NoReturn:
    """Turn this fork into another program: descriptors, signals and environment are as after an exec."""
    code = 70
    try:
        _die_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.dup2(log, 1)
        os.dup2(log, 2)
        last = 2
        for descriptor in sorted(keep):
            os.closerange(last + 1, descriptor)
            last = descriptor
        os.closerange(last + 1, 4096)
        atexit._clear()  # of the process that was forked: a rank runs what is registered when it ends
        _forget_loop()
        # Not by clear(): what of it is read twice has to be there all the time.
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        code = run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - a fork must not go on in its parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _forget_loop() -> None:
    """The event loop of the process that was forked is not this one's."""
    import asyncio

    asyncio._set_running_loop(None)
    asyncio.set_event_loop(None)


def _load() -> None:
    """Import once what all ranks import."""
    if not _loaded:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        _loaded.extend(importlib.import_module(name).__name__ for name in MODULES)
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        gc.collect()
        gc.freeze()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
