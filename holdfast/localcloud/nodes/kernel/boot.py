"""
Program that boots a node from a plan, and system calls that Python 3.11 lacks.

Run as a script (``python -I -S boot.py``, a marshalled plan on standard input): creates the namespaces, connects the
node to the fabric, builds the root and leaves a small shell as PID 1. Few imports, because 64 of these start at once.
Until the caller has recorded the node, every process here dies with the caller.
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH110, PTH112, PTH114, PTH115, PTH118, PTH120, PTH123, PTH106, PTH116, PTH211

from __future__ import annotations

import ctypes
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .plan import Bind, BootPlan, Cgroup, Layer

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 32, 4096, 16384, 1 << 18, 1 << 20
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP = 0x20000000, 0x40000000, 0x02000000
_PR_SET_PDEATHSIG, _SIGKILL, _SYS_PIVOT_ROOT = 1, 9, {"x86_64": 155, "aarch64": 41}
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24

# In cgroup version 2 a cgroup that gives others controllers may have no process of its own.
OWN_PROCESSES = "node"

_READY = 9
"""Descriptor that the shell of PID 1 closes when its traps are set: a signal before that is lost."""

# A child that sleeps is what lets the shell sit in wait(2), reap every orphan, and still hear SIGTERM at once.
INIT_SCRIPT = (
    f"trap '' HUP INT QUIT PIPE ALRM USR1 USR2; trap 'exit 0' TERM; exec {_READY}>&-; "
    "while :; do sleep 86400 & wait $!; done"
)

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        shown = ", ".join(a.decode() if isinstance(a, bytes) else str(a) for a in arguments if a is not None)
        raise OSError(number, f"{name}({shown}): {os.strerror(number)}")


def mount(*, source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _call("mount", encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])


def umount(target: str, *, flags: int = 0) -> None:
    _call("umount2", os.fsencode(target), ctypes.c_int(flags))


def unshare(flags: int) -> None:
    _call("unshare", ctypes.c_int(flags))


def setns(fd: int, kind: int) -> None:
    _call("setns", ctypes.c_int(fd), ctypes.c_int(kind))


def pivot_root() -> None:
    """Make the working directory the root; the old root is stacked on top of it."""
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"pivot_root is not known for machine type {os.uname().machine!r}; use x86_64 or aarch64")
    if _libc.syscall(ctypes.c_long(number), b".", b"old") != 0:
        raise OSError(ctypes.get_errno(), f"pivot_root: {os.strerror(ctypes.get_errno())}")


def die_with_parent(*, yes: bool = True) -> None:
    _call("prctl", ctypes.c_int(_PR_SET_PDEATHSIG), ctypes.c_ulong(_SIGKILL if yes else 0))


def overlay_options(*, lowers: list[str], upper: str, work: str) -> str:
    """Return the mount data, with colons and commas escaped. Folders below can be renamed, as on a disk."""
    escaped = [path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,") for path in (*lowers, upper, work)]
    return f"lowerdir={':'.join(escaped[:-2])},upperdir={escaped[-2]},workdir={escaped[-1]},index=off,redirect_dir=on"


def _program(*argv: str, text: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    pid = os.posix_spawnp(argv[0], argv, dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
    os.close(reader)
    if (code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) != 0:
        raise OSError(f"{' '.join(argv)} ended with {code}, given: {text.strip()}")


def _plug_in(plan: BootPlan) -> None:
    # The address fixes the MAC, so a replacement on the same address is reached at once despite old ARP entries.
    link, me = plan["link"], os.getpid()
    _program(
        "nsenter", f"--net={plan['fabric']}", "ip", "-batch", "-",
        text=f"link add {link} type veth peer name eth0 address {plan['mac']} netns {me}\n"
        f"link set {link} master br0 addrgenmode none up\n",
    )  # fmt: skip
    # Slurm writes a message in two parts; the second would wait for the other side's delayed acknowledgement, 40 ms
    # (measured between slurmctld and slurmdbd 22.05; ip-route(8), quickack).
    at_once = f"src {plan['address']} quickack 1"
    _program(
        "ip", "-batch", "-",
        text="link set lo up\nlink set eth0 addrgenmode none up\n"
        f"addr add {plan['address']}/{plan['prefix']} dev eth0 noprefixroute\n"
        f"route add {plan['subnet']} dev eth0 scope link {at_once}\n"
        f"route replace local {plan['address']} dev eth0 table local scope host {at_once}\n"
        f"route add default via {plan['gateway']}\n",
    )  # fmt: skip


def _layer_of(path: str, layers: list[Layer]) -> tuple[str, str]:
    for layer in reversed(layers):
        at = layer["at"].rstrip("/")
        if path == at or path.startswith(at + "/"):
            return layer["upper"], path[len(at) :].lstrip("/")
    raise AssertionError(path)


def _upper_directory(path: str, layers: list[Layer]) -> str:
    upper, relative = _layer_of(path, layers)
    lower = path[: len(path) - len(relative)]
    for part in relative.split("/"):
        upper, lower = os.path.join(upper, part), os.path.join(lower, part)
        if not os.path.lexists(upper):
            info = os.stat(lower)
            os.mkdir(upper, 0o755)
            os.chown(upper, info.st_uid, info.st_gid)
            os.chmod(upper, stat.S_IMODE(info.st_mode))
    return upper


def _prepare_uppers(plan: BootPlan) -> None:
    """Hide the machine's own files: whiteouts for names, opaque directories for contents."""
    for name in plan["hide"]:
        hidden = os.path.join(plan["layers"][0]["upper"], name)
        if not os.path.lexists(hidden):
            os.mknod(hidden, stat.S_IFCHR, os.makedev(0, 0))
    for path in plan["empty"]:
        upper, relative = _layer_of(path, plan["layers"])
        if not os.path.exists(os.path.join(upper, relative)):
            upper_directory = _upper_directory(path, plan["layers"])
            os.setxattr(upper_directory, "trusted.overlay.opaque", b"y")
            if plan["image"]:
                _copy_tree(plan["image"] + path, upper_directory)


def _copy_tree(source: str, target: str) -> None:
    if not os.path.isdir(source):
        return
    for entry in os.scandir(source):
        copy, info = os.path.join(target, entry.name), entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), copy)
        elif entry.is_dir():
            os.mkdir(copy)
            _copy_tree(entry.path, copy)
        else:
            with open(entry.path, "rb") as original:
                _write(copy, original.read())
        os.chown(copy, info.st_uid, info.st_gid, follow_symlinks=False)
        if not entry.is_symlink():
            os.chmod(copy, stat.S_IMODE(info.st_mode))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _mount_root(plan: BootPlan) -> None:
    mount(source=None, target="/", flags=MS_REC | MS_PRIVATE)
    for layer in plan["layers"]:
        target = plan["root"] + layer["at"].rstrip("/")
        options = overlay_options(lowers=layer["lowers"], upper=layer["upper"], work=layer["work"])
        mount(source="overlay", target=target, kind="overlay", flags=MS_NODEV, data=options)
    os.chdir(plan["root"])
    os.makedirs("old", exist_ok=True)
    pivot_root()
    os.chdir("/")


def _mount_systems() -> None:
    for name in ("proc", "sys", "dev", "run", "tmp"):
        os.makedirs(f"/{name}", exist_ok=True)
    quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount(source="proc", target="/proc", kind="proc", flags=quiet)
    mount(source="sysfs", target="/sys", kind="sysfs", flags=quiet | MS_RDONLY)
    mount(source="dev", target="/dev", kind="tmpfs", flags=MS_NOSUID, data="mode=755")
    mount(source="run", target="/run", kind="tmpfs", flags=MS_NOSUID | MS_NODEV, data="mode=755")
    mount(source="tmp", target="/tmp", kind="tmpfs", flags=MS_NOSUID | MS_NODEV, data="mode=1777")  # noqa: S108
    numbers = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
    for name, (major, minor) in numbers.items():
        os.mknod(f"/dev/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        os.chmod(f"/dev/{name}", 0o666)  # noqa: S103
    for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        os.symlink(f"/proc/self/fd{target}", f"/dev/{name}")
    os.symlink("pts/ptmx", "/dev/ptmx")
    for name in ("shm", "pts"):
        os.mkdir(f"/dev/{name}")
    mount(source="shm", target="/dev/shm", kind="tmpfs", flags=MS_NOSUID | MS_NODEV, data="mode=1777")  # noqa: S108
    options = "newinstance,ptmxmode=0666,mode=620,gid=5"
    mount(source="devpts", target="/dev/pts", kind="devpts", flags=MS_NOSUID | MS_NOEXEC, data=options)


def _write_files(plan: BootPlan) -> None:
    for directory in plan["directories"]:
        os.makedirs(directory["path"], exist_ok=True)
        os.chown(directory["path"], directory["uid"], directory["gid"])
        os.chmod(directory["path"], directory["mode"])
    for file in plan["files"]:
        path = file["path"]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):  # resolv.conf is often a link into a /run that the node does not share
            os.unlink(path)
        _write(path, file["content"])
        os.chown(path, file["uid"], file["gid"])
        os.chmod(path, file["mode"])


def _bind(bind: Bind) -> None:
    source, target = "/old" + bind["source"], bind["target"]
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "ab"):
            pass
    mount(source=source, target=target, flags=MS_BIND)
    _restrict(target, flags=MS_NODEV | (MS_RDONLY if bind["read_only"] else 0))


def _restrict(target: str, *, flags: int) -> None:
    had = os.statvfs(target).f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)  # ST_* have the same numbers
    mount(source=None, target=target, flags=MS_BIND | MS_REMOUNT | flags | had)


def _close_the_kernel(plan: BootPlan) -> None:
    for path in plan["read_only"]:
        if os.path.exists(path):
            mount(source=path, target=path, flags=MS_BIND)
            _restrict(path, flags=MS_RDONLY)
    for path in plan["masked"]:
        if os.path.exists(path):
            mount(source="/dev/null", target=path, flags=MS_BIND)


def _join(cgroups: list[Cgroup]) -> None:
    for each in cgroups:
        _write(f"{each['at']}/cgroup.procs", b"0")
    unshare(CLONE_NEWCGROUP)


def _mount_cgroups(cgroups: list[Cgroup]) -> None:
    quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC
    if [each["name"] for each in cgroups] == [""]:
        mount(source="cgroup2", target="/sys/fs/cgroup", kind="cgroup2", flags=quiet)
        _leave_top("/sys/fs/cgroup")
        return
    mount(source="cgroup", target="/sys/fs/cgroup", kind="tmpfs", flags=quiet, data="mode=755")
    for each in cgroups:
        target = f"/sys/fs/cgroup/{each['name']}"
        os.mkdir(target)
        if not each["controllers"]:
            mount(source="cgroup2", target=target, kind="cgroup2", flags=quiet)
            continue
        named = each["controllers"].startswith("name=")
        options = f"none,{each['controllers']}" if named else each["controllers"]
        mount(source="cgroup", target=target, kind="cgroup", flags=quiet, data=options)


def _leave_top(top: str) -> None:
    os.mkdir(f"{top}/{OWN_PROCESSES}")
    _write(f"{top}/{OWN_PROCESSES}/cgroup.procs", b"0")
    with open(f"{top}/cgroup.controllers") as file:
        for name in file.read().split():
            _write(f"{top}/cgroup.subtree_control", f"+{name}".encode())


def mount_kernel_log(fuse: int) -> None:
    """Mount the node's kernel log; the server holds the other end of the /dev/fuse descriptor."""
    _write("/dev/kmsg", b"")
    data = f"fd={fuse},rootmode=100644,user_id=0,group_id=0,allow_other,default_permissions"
    mount(source="kmsg", target="/dev/kmsg", kind="fuse.kmsg", flags=MS_NOSUID | MS_NODEV | MS_NOEXEC, data=data)


def mount_kernel_log_again(pid: int, fuse: int) -> None:
    """Replace the kernel log of the node with this PID 1. For a program of one thread."""
    with open(f"/proc/{pid}/ns/mnt") as namespace:
        _call("setns", ctypes.c_int(namespace.fileno()), ctypes.c_int(CLONE_NEWNS))
    umount("/dev/kmsg", flags=MNT_DETACH)
    mount_kernel_log(fuse)


def _cover(plan: BootPlan) -> None:
    for number, file in enumerate(plan["kernel_files"]):
        os.makedirs("/run/holdfast/kernel", exist_ok=True)
        cover = f"/run/holdfast/kernel/{number}"
        _write(cover, file["content"])
        if os.path.exists(file["path"]):
            mount(source=cover, target=file["path"], flags=MS_BIND)


def keep_capabilities(kept: list[int]) -> None:
    number = 0
    while _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number)) >= 0:
        if number not in kept:
            _call("prctl", ctypes.c_int(_PR_CAPBSET_DROP), ctypes.c_ulong(number))
        number += 1


def _build(plan: BootPlan) -> None:
    console = os.open(plan["console"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _prepare_uppers(plan)
    _mount_root(plan)
    _mount_systems()
    if plan["cgroups"]:
        _mount_cgroups(plan["cgroups"])
    if plan["kernel_log"] >= 0:
        mount_kernel_log(plan["kernel_log"])
    elif plan["cgroups"]:
        # The kubelet ends without a kernel log, which it searches for processes out of memory; this one is empty.
        os.mknod("/dev/kmsg", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    _write_files(plan)
    for bind in plan["binds"]:
        _bind(bind)
    umount("/old", flags=MNT_DETACH)
    os.rmdir("/old")
    _close_the_kernel(plan)
    _cover(plan)
    # As systemd does: mounts of containers reach each other through it, and later ones the services that were confined.
    mount(source=None, target="/", flags=MS_REC | MS_SHARED)
    name = plan["hostname"].encode()
    _call("sethostname", name, ctypes.c_size_t(len(name)))
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(console, 1)


def _become_init(*, plan: BootPlan, ready: int, go: int) -> None:
    """Become PID 1: report the root, wait for permission to outlive the caller, exec the shell."""
    die_with_parent()
    os.setsid()
    if plan["cgroups"]:
        _join(plan["cgroups"])
    _build(plan)
    os.write(ready, b"1")
    if os.read(go, 1) != b"1":
        os._exit(1)
    die_with_parent(yes=False)
    keep_capabilities(plan["capabilities"])
    os.dup2(1, 2)
    os.dup2(ready, _READY)
    os.set_inheritable(_READY, True)  # noqa: FBT003
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {"PATH": path, "HOME": "/", "container": "holdfast"}
    os.execve("/bin/sh", ["holdfast-init", "-c", INIT_SCRIPT], environment)  # noqa: S606


def _guarded(action: Callable[[], None]) -> None:
    """Run ``action`` in a forked child, which never returns into the parent's code."""
    try:
        action()
    except Exception as error:  # noqa: BLE001  the entry point of a process
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)


def main() -> int:
    import marshal

    os.umask(0o022)
    die_with_parent()
    plan: BootPlan = marshal.load(sys.stdin.buffer)  # noqa: S302  the caller is this very interpreter
    if os.getppid() != plan["caller"]:
        return 1
    for fd in plan["inherited"]:  # as the fleet's lock is: held until the shell takes over, never by the shell
        os.set_inheritable(fd, False)  # noqa: FBT003
    unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)
    _plug_in(plan)
    unshare(CLONE_NEWPID)
    ready, ready_write = os.pipe()
    go_read, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        _guarded(lambda: _become_init(plan=plan, ready=ready_write, go=go_read))
    os.close(ready_write)
    os.close(go_read)
    if os.read(ready, 1) != b"1":
        return 1
    print(child, flush=True)
    if sys.stdin.buffer.read(1) != b"1":
        return 1
    os.write(go, b"1")
    os.read(ready, 1)  # end of file: the shell has its traps
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as problem:
        sys.exit(str(problem))
