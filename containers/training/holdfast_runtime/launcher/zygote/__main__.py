"""
The process that has imported torch and forks on request, so that a new rank costs milliseconds and not seconds.

It has one thread, runs no operation and opens no device: all of that would not survive a fork. Its children are
handed to the launcher (a double fork under its subreaper), which alone watches and reaps them.

Between two requests it looks whether the launcher is stopped: programs that do not speak with it do not.

Run as ``python -m holdfast_runtime.launcher.zygote FD FROZEN MODULE ...``.
"""

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from holdfast_runtime.control import FROM_RANK, Fault, LauncherWatch, timeval
from holdfast_runtime.launcher.zygote.request import BEGIN, Request, die_with_parent

MESSAGE_BYTES = 1 << 20
OF_THE_CODE = (ImportError, SyntaxError, NameError, AttributeError, TypeError)
"""Errors that no other process causes and no second start heals."""
WRONG_ARGUMENT = 2
"""Exit code of ``argparse`` and of most command lines."""
BEGINNING_S = 60.0
"""Time from the start of a process for which its program is not taken for one that trains without the runtime."""
NOT_FOR_IT = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT)
"""What a scheduler or a terminal sends to the whole process group: the launcher acts on it."""


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent()
    at_start = {number: signal.signal(number, signal.SIG_IGN) for number in NOT_FOR_IT}
    launcher = LauncherWatch(pid=os.getppid(), limit_s=float(sys.argv[2]))
    for name in sys.argv[3:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what was imported stays shared: the collector does not touch it in the children
    line.send(b"ready")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(launcher.every_s))
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 3)
        except BlockingIOError:
            launcher.look()
            continue
        if not data:
            return
        request = Request.from_json(data)
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 and newer warn of threads. Those of what was imported wait for work, and hold nothing.
            warnings.simplefilter("ignore", DeprecationWarning)
            between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                os.close(reader)
                line.close()
                become(request, descriptors, writer=writer, handlers=at_start)
            os.write(writer, str(child).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(between, 0)
        line.send(os.read(reader, 64))
        os.close(reader)
        for descriptor in descriptors:
            os.close(descriptor)


def become(
    request: Request, descriptors: list[int], *, writer: int, handlers: Mapping[signal.Signals, Any]
) -> NoReturn:
    """
    Turn this fork into the program's process, run it, and end with its exit code.

    Args:
        handlers: What signals do in it, besides SIGINT and SIGTERM: as when the launcher was started. Programs such as
            Lightning's install none of their own where one is not the default.
    """
    os.close(writer)
    control, out, err = descriptors
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in (out, err):
        if descriptor > 2:
            os.close(descriptor)
    of_program = {**handlers, signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number, handler in of_program.items():
        signal.signal(number, handler)
    os.setpgid(0, 0)
    _wait_for_launcher(int(request.environment["HOLDFAST_LAUNCHER_PID"]))
    die_with_parent()
    if os.read(control, len(BEGIN)) != BEGIN:
        os._exit(1)  # the launcher has given this one up
    os.environ.clear()
    os.environ.update(request.environment)
    os.environ["HOLDFAST_CONTROL_FD"] = str(control)
    sys.argv[:] = list(request.arguments)
    end(run_program(request))


def _ends_each_start(error: BaseException, environment: Mapping[str, str], *, age_s: float) -> bool:
    """Return True if a rank that begins the job, and has not reached ``Run``, would end so in each generation."""
    begins = environment["HOLDFAST_ROLE"] == "rank" and environment["TORCHELASTIC_RESTART_COUNT"] == "0"
    own = error.code == WRONG_ARGUMENT if isinstance(error, SystemExit) else isinstance(error, OF_THE_CODE)
    return begins and age_s < BEGINNING_S and sys.excepthook is sys.__excepthook__ and own


def _described(error: Exception) -> str:
    trace = error.__traceback__
    place = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {error}{place}"


def _end_job(what: str) -> None:
    reason = f"{what}, before Run: trying again does not help, see above"
    line = FROM_RANK.encode(Fault(reason=reason.replace("\n", " "), fatal=True)) + b"\n"
    with (
        contextlib.suppress(OSError, LookupError),
        socket.socket(fileno=int(os.environ["HOLDFAST_CONTROL_FD"])) as control,
    ):
        control.sendall(line)


def _wait_for_launcher(pid: int) -> None:
    for _ in range(10_000):
        if os.getppid() == pid:
            return
        time.sleep(0.0005)
    os._exit(1)


def end(code: int) -> NoReturn:
    threading._shutdown()  # type: ignore[attr-defined]  # joins what is no daemon; there is no public name for it
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run_program(request: Request) -> int:
    began_s = time.monotonic()
    try:
        if request.module:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(request.arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(request.arguments[0]).resolve().parent)
            runpy.run_path(request.arguments[0], run_name="__main__")
    except Exception as error:  # noqa: BLE001 - what a script raises is told as Python would, without this file
        trace = error.__traceback__
        while trace is not None and (
            "runpy" in trace.tb_frame.f_code.co_filename or trace.tb_frame.f_code.co_filename == __file__
        ):
            trace = trace.tb_next
        ends = _ends_each_start(error, request.environment, age_s=time.monotonic() - began_s)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if ends:
            _end_job(_described(error))
        return 1
    except SystemExit as error:
        if _ends_each_start(error, request.environment, age_s=time.monotonic() - began_s):
            _end_job(f"exit code {error.code}, as of a wrong argument")
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    main()
