"""Programs of a build: deadline, output line by line, killed with this process."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError

_LAST_LINES = 12
_FULL = "No space left on device"
_LOOK_S = 0.5


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    deadline_s: float,
    cwd: Path | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> str:
    """Return the output; killed at the deadline or with this process. Raise BinariesError, also if the disk is full."""
    name = Path(argv[0]).name
    # A killed build must not leave a compiler at work; the kernel sees to it, so nothing has to survive to do it.
    command = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    try:
        process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise BinariesError(f"the program {error.filename} is missing; a build needs it") from None
    lines: list[str] = []
    try:
        for line in _lines(process, deadline=time.monotonic() + deadline_s):
            lines.append(line)
            on_line(line)
        process.wait(timeout=deadline_s)
    except TimeoutError:
        raise BinariesError(f"{name} took longer than {deadline_s:g} s and was killed; run the command again") from None
    finally:
        _end(process)
    if process.returncode == 0:
        return "\n".join(lines)
    if any(_FULL in line for line in lines):
        raise BinariesError(f"the disk is full ({name}); free some space and run the command again: it resumes")
    tail = "\n".join(lines[-_LAST_LINES:])
    raise BinariesError(f"{name} exited with {process.returncode}: {tail}")


def _lines(process: "subprocess.Popen[bytes]", *, deadline: float) -> Iterator[str]:
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if time.monotonic() > deadline:
                raise TimeoutError
            if not selector.select(timeout=_LOOK_S):
                continue
            got = os.read(process.stdout.fileno(), 65536)
            *whole, rest = (rest + got).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            if not got:
                if rest:
                    yield rest.decode(errors="replace")
                return


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.stdout is not None:
        process.stdout.close()
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
