"""
Sandbox of a function: namespaces, a read-only root, no rights.

Run as a module (``python -I -m``) with a plan on standard input. The function sees the machine's programs and
libraries, its own code, its layers and a ``/tmp``, and shares the machine's network, where the embedded AWS listens on
the loopback.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from holdfast.localcloud.nodes.kernel import boot

UID = 64_993
"""Not in use: above Debian's login users, below systemd's dynamic ones."""
QUIET = boot.MS_NOSUID | boot.MS_NODEV
LARGEST_FILES, LARGEST_PROCESSES = 1024, 1024
"""Of open files and of processes (Lambda developer guide, gettingstarted-limits, 2026-11)."""
_PR_SET_NO_NEW_PRIVS = 38
DEVICES = ("null", "zero", "full", "random", "urandom")


def main() -> int:
    """Return the function's exit code, or 120 without a sandbox."""
    os.umask(0o022)
    boot.die_with_parent()
    plan: dict[str, Any] = json.load(sys.stdin.buffer)
    if os.getppid() != plan["caller"]:
        return 120
    boot.unshare(boot.CLONE_NEWNS | boot.CLONE_NEWIPC | boot.CLONE_NEWUTS | boot.CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        try:
            _become(plan)
        except OSError as error:
            print(f"the function's sandbox: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(120)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _become(plan: dict[str, Any]) -> None:
    """Become PID 1 of the sandbox: its processes end with the handler."""
    boot.die_with_parent()
    given = os.memfd_create("event")
    os.write(given, json.dumps(plan["given"]).encode())
    os.lseek(given, 0, os.SEEK_SET)
    os.dup2(given, 0)
    _build(plan)
    boot.keep_capabilities([])
    for kind, most in (
        (resource.RLIMIT_NOFILE, LARGEST_FILES),
        (resource.RLIMIT_NPROC, LARGEST_PROCESSES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    boot._libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    boot.die_with_parent()  # the kernel forgets it when the user changes
    os.chdir("/var/task")
    os.execve(plan["argv"][0], plan["argv"], plan["environment"])  # noqa: S606 - a list, no shell


def _build(plan: dict[str, Any]) -> None:
    boot.mount(source=None, target="/", flags=boot.MS_REC | boot.MS_PRIVATE)
    boot.mount(source="root", target=plan["root"], kind="tmpfs", flags=QUIET, data="mode=755,size=1m")
    os.chdir(plan["root"])
    for name in ("old", "proc", "dev", "tmp", "etc", "var", "opt"):
        Path(name).mkdir()
    boot.pivot_root()
    os.chdir("/")
    for path, text in plan["files"].items():
        _file(path, text)
    for path, target in plan["links"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(target)
    # Before what is bound: the interpreter may lie below it.
    boot.mount(source="tmp", target="/tmp", kind="tmpfs", flags=QUIET, data=f"mode=1777,size={plan['tmp_mib']}m")  # noqa: S108
    for target, source in plan["binds"].items():
        _bind(f"/old{source}", target)
    boot.mount(source="proc", target="/proc", kind="proc", flags=QUIET | boot.MS_NOEXEC)
    for name in DEVICES:
        _file(f"/dev/{name}", "")
        boot.mount(source=f"/old/dev/{name}", target=f"/dev/{name}", flags=boot.MS_BIND)
    boot.umount("/old", flags=boot.MNT_DETACH)
    Path("/old").rmdir()
    boot.mount(source=None, target="/", flags=boot.MS_BIND | boot.MS_REMOUNT | boot.MS_RDONLY | QUIET)


def _file(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def _bind(source: str, target: str) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        _file(target, "")
    boot.mount(source=source, target=target, flags=boot.MS_BIND)
    had = os.statvfs(target).f_flag & (boot.MS_NOEXEC | boot.MS_RDONLY)
    boot.mount(source=None, target=target, flags=boot.MS_BIND | boot.MS_REMOUNT | boot.MS_RDONLY | QUIET | had)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as problem:
        print(f"the function's sandbox: {problem}", file=sys.stderr, flush=True)
        sys.exit(120)
