"""
Clears away what tests left when the process that ran them ended before their fixtures could do so.

A program of its own watches each process that runs tests, in a session of its own, so that no Ctrl-C reaches it. It
knows what tests started by a variable in its environment, and nodes by their mounts below pytest's folder.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "TESTS_OF"
PATIENCE_S = 30.0
"""How long a process may go on whose controller is gone."""
_LIMIT_S = 10.0


def watch(folder: Path, *, controlled: bool) -> None:
    """
    Have all that this process starts from now on ended when this process has ended, however that came about.

    Args:
        folder: Below which tests make their homes.
        controlled: Whether this process should not outlive its parent.
    """
    os.environ.pop(MARK, None)
    ours = os.pidfd_open(os.getpid())
    parents = os.pidfd_open(os.getppid()) if controlled else ours
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    try:
        watching = subprocess.Popen(
            [sys.executable, __file__, str(ours), str(parents), mark, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            pass_fds=(ours, parents),
            start_new_session=True,
        )
    finally:
        for fd in {ours, parents}:
            os.close(fd)
    watching.returncode = 0  # it outlives this process on purpose
    os.environ[MARK] = mark


def sweep(folder: Path, *, mark: str) -> list[str]:
    """End and remove it all; returns what there was."""
    processes = _end_processes(mark)
    homes = {Path(words[words.index("--home") + 1]) for words in processes.values() if "--home" in words[:-1]}
    homes = {home for home in homes if home.is_relative_to(folder)}
    mounts = _mounts_below(folder)
    homes |= {mount.parent for mount in mounts if mount.name == "nodes"}
    if homes:
        from holdfast.localcloud.home import remove_tree
        from holdfast.localcloud.nodes import Fleet

        for home in sorted(homes):
            Fleet(home=home).close()
            _unmount_below(home)
            with contextlib.suppress(FileNotFoundError):
                remove_tree(home)
    _unmount_below(folder)
    told = [f"process {pid}: {' '.join(words)}" for pid, words in processes.items()]
    return told + [f"mount {mount}" for mount in mounts]


def _end_processes(mark: str) -> dict[int, list[str]]:
    ended: dict[int, list[str]] = {}
    deadline = time.monotonic() + _LIMIT_S
    while (found := _marked(mark)) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(OSError):
                ended.setdefault(pid, _words(pid, "cmdline"))
                _kill(pid, mark)
        time.sleep(0.02)
    return ended


def _marked(mark: str) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_marked(int(path.name), mark)]


def _is_marked(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={mark}" in _words(pid, "environ")
    return False


def _words(pid: int, name: str) -> list[str]:
    return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace").rstrip("\0").split("\0")


def _kill(pid: int, mark: str) -> None:
    handle = os.pidfd_open(pid)
    try:
        if _is_marked(pid, mark):  # asked again: the number may be another process's by now
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def _mounts_below(folder: Path) -> list[Path]:
    points = [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.is_relative_to(folder)]


def _unmount_below(folder: Path) -> None:
    for mount in reversed(_mounts_below(folder)):
        subprocess.run(["umount", "--lazy", str(mount)], check=False)


def _wait(ours: int, parents: int) -> None:
    """Until the process that runs tests has ended."""
    if ours in select.select({ours, parents}, [], [])[0]:
        return
    if not select.select([ours], [], [], PATIENCE_S)[0]:
        signal.pidfd_send_signal(ours, signal.SIGKILL)
        select.select([ours], [], [])


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ours, parents, mark, folder = sys.argv[1:]
    _wait(int(ours), int(parents))
    for line in sweep(Path(folder), mark=mark):
        print(f"left by tests and removed: {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
