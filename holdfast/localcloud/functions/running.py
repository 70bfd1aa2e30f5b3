"""One event for one function: start, wait with timeout, end all its processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

POLL_S = 0.05
LARGEST_OUTPUT_BYTES = 1 << 20
"""Of what is kept for the log; the rest is read and dropped."""
NO_SANDBOX = 120
"""Message of the sandbox that the function was not started."""
MACHINE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Programs and libraries; links of a machine that has merged them stay links."""
SETTINGS = tuple(
    f"/etc/{name}" for name in ("ssl", "ca-certificates", "hosts", "resolv.conf", "nsswitch.conf", "ld.so.cache")
)
ACCOUNTS = {
    "/etc/passwd": "sbx_user1051:x:64993:64993::/tmp:/sbin/nologin\n",
    "/etc/group": "sbx_user1051:x:64993:\n",
}
LAYERS = "/opt"
"""Where a function finds its layers (Lambda developer guide, packaging-layers, 2026-11)."""
RUNTIME = "/var/runtime/bootstrap.py"
HERE = Path(__file__).parent


class FunctionError(Exception): ...


@dataclass(frozen=True, kw_only=True)
class LambdaFunction:
    code: Path
    layers: Path | None
    handler: str
    environment: Mapping[str, str] = field(repr=False)
    """The function's own variables, and those that Lambda sets, keys among them."""
    context: Mapping[str, str | int]
    """The handler's context, in the members of ``bootstrap.Context`` but for its end."""
    timeout_s: float
    tmp_mib: int = 512


@dataclass(frozen=True, kw_only=True)
class Run:
    output: str
    """Output, whose last lines have the reason of a failure."""
    ended: bool
    """True if the handler returned; False if it raised, was killed, or timed out."""
    timed_out: bool = False


def run(function: LambdaFunction, *, event: Mapping[str, Any], pause: Callable[[float], None], root: Path) -> Run:
    """
    Run it; an exception of ``pause`` ends it and is raised.

    Args:
        root: Empty folder, made if missing, below which each function mounts its own root. Functions may share it.

    Raises:
        FunctionError: No sandbox.
    """
    if os.geteuid() != 0:
        raise FunctionError("functions run in namespaces, which require root; run as root or with sudo")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    plan = json.dumps(_plan(function, event, root=str(root))).encode()
    child = subprocess.Popen(
        [sys.executable, "-I", "-m", "holdfast.localcloud.functions.sandbox"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={},
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    kept: list[bytes] = []
    reader = threading.Thread(target=_keep, args=(child.stdout, kept), daemon=True)
    reader.start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it ended at once, and says why
            child.stdin.write(plan)
            child.stdin.close()
        timed_out = not _ended(child, function.timeout_s, pause)
    finally:
        _end(child)
        reader.join(timeout=5)
        child.stdout.close()
    output = b"".join(kept).decode(errors="replace")
    if child.returncode == NO_SANDBOX and not timed_out:
        raise FunctionError(output.strip() or "the function's sandbox could not be made")
    return Run(output=output, ended=child.returncode == 0 and not timed_out, timed_out=timed_out)


def _plan(function: LambdaFunction, event: Mapping[str, Any], *, root: str) -> dict[str, Any]:
    links = {path: str(Path(path).readlink()) for path in MACHINE if Path(path).is_symlink()}
    there = [path for path in (*MACHINE, *SETTINGS) if path not in links and Path(path).exists()]
    python = _python()
    layers = _around(function.layers, LAYERS, python) if function.layers else {}
    links.update({path: str(source.readlink()) for path, source in layers.items() if source.is_symlink()})
    return {
        "caller": os.getpid(),
        "root": root,
        "files": ACCOUNTS,
        "links": links,
        "binds": {
            **{path: os.path.realpath(path) for path in there},
            **python,
            RUNTIME: str(HERE / "bootstrap.py"),
            "/var/task": str(function.code),
            **{path: str(source) for path, source in layers.items() if not source.is_symlink()},
        },
        "tmp_mib": function.tmp_mib,
        "environment": {**function.environment},
        "argv": [sys.executable, "-I", "-B", RUNTIME],
        "given": {
            "handler": function.handler,
            "event": event,
            "context": {**function.context, "ends_at": time.monotonic() + function.timeout_s},
        },
    }


def _python() -> dict[str, str]:
    folders = dict.fromkeys((sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)))
    return {path: os.path.realpath(path) for path in folders if f"/{path.split('/')[1]}" not in MACHINE}


def _around(folder: Path, at: str, python: Collection[str]) -> dict[str, Path]:
    """Return the mounts of a folder. Raise FunctionError if it has content at the interpreter's place."""
    inside = [path for path in python if f"{path}/".startswith(f"{at}/")]
    if not inside:
        return {at: folder}
    if folder.is_symlink() or not folder.is_dir() or at in inside:
        raise FunctionError(
            f"the function's layers have {at}, where this machine's Python is ({inside[0]}); "
            f"make the virtual environment, or install Python, outside of {LAYERS}"
        )
    return {
        path: source for each in folder.iterdir() for path, source in _around(each, f"{at}/{each.name}", python).items()
    }


def _keep(stream: IO[bytes], kept: list[bytes]) -> None:
    size = 0
    with contextlib.suppress(ValueError, OSError):  # closed, as something holds it open that has left the group
        while chunk := os.read(stream.fileno(), 1 << 16):
            if size < LARGEST_OUTPUT_BYTES:
                kept.append(chunk[: LARGEST_OUTPUT_BYTES - size])
            size += len(chunk)


def _ended(child: "subprocess.Popen[bytes]", timeout_s: float, pause: Callable[[float], None]) -> bool:
    deadline = time.monotonic() + timeout_s
    while child.poll() is None:
        if time.monotonic() >= deadline:
            return False
        pause(POLL_S)
    return True


def _end(child: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
