"""
The file systems of ``mounts.json`` are mounted, now and at boot; what is mounted already stays.

AWS's page leaves that to scripts where OnCreate runs, and AWS's own samples have HyperPod mount there too. Options as
in the guides of FSx for Lustre (``mount-fs-auto-mount-onreboot``) and for OpenZFS.
"""

from pathlib import Path

from holdfast_lifecycle.model import LUSTRE, Context, Mount, StepError
from holdfast_lifecycle.node import run_program, wait_until, with_lines, write_whole

_FSTAB = "/etc/fstab"
_WAIT_S = 120.0
"""The node's network is still being set up when the script begins, and the name may not be known yet."""
_MOUNT_S = 60.0
_OPTIONS = {LUSTRE: "noatime,flock", "openzfs": "nfsvers=4.1,noatime"}
_AT_BOOT = "_netdev,x-systemd.automount,x-systemd.requires=network-online.target"


def source(mount: Mount) -> str:
    """As mount takes it. The root volume of an OpenZFS file system is called fsx."""
    return f"{mount.dns_name}@tcp:/{mount.mount_name}" if mount.kind == LUSTRE else f"{mount.dns_name}:/fsx"


def _kind(mount: Mount) -> str:
    return LUSTRE if mount.kind == LUSTRE else "nfs"


def _mounted(context: Context) -> set[str]:
    return {line.split()[4] for line in context.path("/proc/self/mountinfo").read_text().splitlines()}


def _fstab(context: Context) -> str:
    path = context.path(_FSTAB)
    before = path.read_text() if path.exists() else ""
    lines = [f"{source(m)} {m.path} {_kind(m)} {_OPTIONS[m.kind]},{_AT_BOOT} 0 0" for m in context.mounts]
    return with_lines(before, lines)


def _is_in_fstab(context: Context) -> bool:
    path = context.path(_FSTAB)
    return path.exists() and path.read_text() == _fstab(context)


def check(context: Context) -> bool:
    mounted = _mounted(context)
    return all(mount.path in mounted for mount in context.mounts) and (not context.mounts or _is_in_fstab(context))


def apply(context: Context) -> None:
    for mount in context.mounts:
        _mount(context, mount)
    if not _is_in_fstab(context):
        write_whole(context.path(_FSTAB), _fstab(context).encode())


def _mount(context: Context, mount: Mount) -> None:
    """Retry, since an unresolved name may be temporary."""
    context.path(mount.path).mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []

    def done() -> bool:
        if mount.path in _mounted(context):
            return True
        try:
            arguments = ("-t", _kind(mount), "-o", _OPTIONS[mount.kind], source(mount), mount.path)
            run_program("mount", *arguments, timeout_s=_MOUNT_S)
        except StepError as error:
            complaints.append(error.seen)
        return mount.path in _mounted(context)

    if not wait_until(done, timeout_s=_WAIT_S):
        ports = "988 and 1018-1023" if mount.kind == LUSTRE else "111, 2049 and 20001-20003"
        raise StepError(
            expected=f"{source(mount)} is mounted at {mount.path} within {_WAIT_S:g} s",
            seen=complaints[-1] if complaints else "mount succeeds, but nothing is mounted",
            action="check that the file system is AVAILABLE, that the node resolves its name, and that its security"
            f" group lets the nodes reach the ports {ports}",
        )


def verify(context: Context) -> str:
    if not check(context):
        missing = [mount.path for mount in context.mounts if mount.path not in _mounted(context)]
        raise StepError(
            expected="every file system of the group is mounted, now and after a reboot",
            seen=f"not mounted: {', '.join(missing)}" if missing else f"{_FSTAB} is not as written",
            action="check for a program on the node that unmounts it or rewrites the file",
        )
    return ", ".join(f"{source(m)} at {Path(m.path)}" for m in context.mounts) or "nothing to mount"
