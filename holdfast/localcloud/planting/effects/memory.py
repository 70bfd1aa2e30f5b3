"""An out-of-memory kill in a small memory cgroup."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.nodes import Node, kill_group
from holdfast.localcloud.nodes.kernel import proc

_LIMIT = 32 << 20
_WITHIN_S = 20.0
_GREEDY = "read -r go; x=0123456789abcdef; while :; do x=$x$x; done"
_TOP = Path("/sys/fs/cgroup")


def run_out_of_memory(node: Node) -> tuple[list[str], int]:
    """Run a program into its memory limit; return kernel messages and exit code. Raise OSError without a kill."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(log, 0, os.SEEK_END)
        with _limited(f"holdfast-oom-{node.spec.instance_id}") as group:
            killed, code = _run(node, group)
        return _reported(log, killed), code
    finally:
        os.close(log)


def _run(node: Node, group: Path) -> tuple[int, int]:
    entrance = node.popen(["/bin/sh", "-c", _GREEDY], stdin=subprocess.PIPE)
    try:
        greedy = _child(entrance.pid, of=node)
        (group / "cgroup.procs").write_text(str(greedy))
        entrance.communicate(b"go\n", timeout=_WITHIN_S)
    except BaseException:
        kill_group(entrance)
        entrance.communicate()
        raise
    code = entrance.returncode
    return greedy, 128 - code if code < 0 else code


def _child(pid: int, *, of: Node) -> int:
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        for member in proc.members(of.pid):
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{member}/stat").read_text()
                if int(stat.rpartition(")")[2].split()[1]) == pid and proc.program(member) == "sh":
                    return member
        time.sleep(0.01)
    raise OSError("the out-of-memory program did not start")


@contextlib.contextmanager
def _limited(name: str) -> Iterator[Path]:
    if (_TOP / "memory").is_dir():
        group, limits = _TOP / "memory" / name, {"memory.limit_in_bytes": _LIMIT}
    else:
        group, limits = _TOP / name, {"memory.max": _LIMIT, "memory.swap.max": 0}
        (_TOP / "cgroup.subtree_control").write_text("+memory")
    group.mkdir(exist_ok=True)
    try:
        for knob, value in limits.items():
            with contextlib.suppress(FileNotFoundError):  # a machine without swap has none for it
                (group / knob).write_text(str(value))
        yield group
    finally:
        deadline = time.monotonic() + _WITHIN_S
        while group.is_dir() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the kernel moves what a dead process has left a moment later
                group.rmdir()
                break
            time.sleep(0.01)


def _reported(log: int, killed: int) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        try:
            record = os.read(log, 1 << 13).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.01)
            continue
        except BrokenPipeError:
            continue
        head, _, body = record.partition(";")
        text = body.partition("\n")[0]
        if "invoked oom-killer" in text:
            found = []
        if int(head.partition(",")[0]) >> 3 == 0:
            found.append(text)
        if f"Killed process {killed} " in text:
            return found
    raise OSError(f"this machine's kernel did not report an out-of-memory kill of process {killed}")
