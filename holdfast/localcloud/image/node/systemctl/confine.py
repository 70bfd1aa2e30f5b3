"""
Sandbox of a unit's process; systemd.exec(5), "Sandboxing" and "Capabilities".

Supported: capabilities, ``NoNewPrivileges``, mounts. Settings that need seccomp or a cgroup are ignored, as systemd
does on a kernel without them. Pure: ``sees`` and ``capabilities``; the rest runs between fork and exec.
"""

from __future__ import annotations

import os

from .units import Root, Unit, UnitError

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 32, 4096, 16384, 1 << 19
CLONE_NEWNS = 0x00020000
_PR_SET_KEEPCAPS, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 8, 23, 24, 38, 47
_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
CAPABILITIES = (
    "chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
    "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
    "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
    "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf",
    "checkpoint_restore",
)  # fmt: skip
"""By number; linux/capability.h."""
_TAKEN_BY = {
    "ProtectKernelModules": ("sys_module",), "ProtectKernelLogs": ("syslog",),
    "ProtectClock": ("sys_time", "wake_alarm"), "PrivateDevices": ("mknod", "sys_rawio"),
}  # fmt: skip
_READ_ONLY_SYSTEM = {
    "": (), "no": (), "yes": ("/usr", "/boot", "/efi"), "full": ("/usr", "/boot", "/efi", "/etc"), "strict": ("/",),
}  # fmt: skip
_NEVER_REMOUNTED = ("/proc", "/sys", "/dev")
"""Strict leaves these alone: systemd.exec(5), ProtectSystem=."""
_HOMES = ("/home", "/root", "/run/user")


class ConfineError(OSError):
    """The sandbox failed; ``exit_status`` is systemd's."""

    def __init__(self, text: str, *, exit_status: int) -> None:
        super().__init__(text)
        self.exit_status = exit_status


def capabilities(unit: Unit, key: str, *, default: frozenset[int]) -> frozenset[int]:
    """Return the numbers of CapabilityBoundingSet= or AmbientCapabilities=; a first word ``~X`` means all but X."""
    if key not in unit.sections.get("Service", {}):
        return default
    found: set[int] = set()
    for number, value in enumerate(unit.all("Service", key)):
        inverted = value.startswith("~")
        named = {_number(unit, word) for word in value.removeprefix("~").split()}
        if inverted and number == 0:
            found = set(range(len(CAPABILITIES)))
        found = found - named if inverted else found | named
    return frozenset(found)


def _number(unit: Unit, word: str) -> int:
    try:
        return CAPABILITIES.index(word.lower().removeprefix("cap_"))
    except ValueError:
        raise UnitError(f"{unit.name}: not a capability: {word!r}") from None


def sees(unit: Unit, *, own: tuple[str, ...]) -> dict[str, str]:
    """
    Return path to access: ``rw``, ``ro``, ``none`` or ``fresh``; the nearest parent counts.

    Args:
        own: RuntimeDirectory= and the like, always writable.
    """
    found: dict[str, str] = {}
    system = unit.one("Service", "ProtectSystem").lower()
    system = {"true": "yes", "on": "yes", "1": "yes", "false": "no", "off": "no", "0": "no"}.get(system, system)
    if system not in _READ_ONLY_SYSTEM:
        raise UnitError(f"{unit.name}: ProtectSystem= must be a boolean, full or strict, got {system!r}")
    found |= dict.fromkeys(_READ_ONLY_SYSTEM[system], "ro")
    home = unit.one("Service", "ProtectHome", "no").lower()
    kind = "ro" if home == "read-only" else "none" if home in ("yes", "true", "on", "1", "tmpfs") else ""
    found |= {path: kind for path in _HOMES if kind}
    if unit.flag("Service", "ProtectControlGroups"):
        found["/sys/fs/cgroup"] = "ro"
    if unit.flag("Service", "PrivateTmp"):
        found |= {"/tmp": "fresh", "/var/tmp": "fresh"}  # noqa: S108
    for key, means in (("ReadOnlyPaths", "ro"), ("ReadWritePaths", "rw"), ("InaccessiblePaths", "none")):
        found |= dict.fromkeys(unit.names("Service", key), means)
    return found | {path: "rw" for path in own if found}


def files(root: Root, unit: Unit, *, own: tuple[str, ...]) -> None:
    desired = sees(unit, own=own)
    if not desired:
        return
    try:
        _enter_view(_present(root, unit, desired))
    except OSError as error:
        raise ConfineError(f"no view of the files of its own: {error}", exit_status=226) from None


def _present(root: Root, unit: Unit, desired: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, means in desired.items():
        bare = path.lstrip("-+")
        at = "/" if bare == "/" else os.path.realpath(root.at(bare))
        if os.path.exists(at):
            found[at] = means
        elif path == bare and bare in [p for key in _NAMED for p in unit.names("Service", key)]:
            raise FileNotFoundError(2, "No such file or directory", bare)
    return dict(sorted(found.items()))


_NAMED = ("ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths")


def _enter_view(desired: dict[str, str]) -> None:
    libc = _libc()
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _mount(None, "/", flags=MS_REC | MS_SLAVE)  # what is mounted on the node later appears here, too
    mounted = set(_mount_points())
    for path, means in desired.items():
        if not os.path.lexists(path):
            continue  # hidden by one of the mounts above it
        if means == "none":
            _hide(path)
        elif means == "fresh":
            _mount("tmpfs", path, kind="tmpfs", flags=MS_NOSUID | MS_NODEV, data="mode=1777")
        elif path not in mounted:
            _mount(path, path, flags=MS_BIND | MS_REC)
    for path in to_remount(_mount_points(), desired):
        if os.path.lexists(path):
            had = os.statvfs(path).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
            _mount(None, path, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | had)
    os.chdir("/")


def to_remount(mount_points: list[str], desired: dict[str, str]) -> list[str]:
    """Return mounts to make read-only. Others are not touched: a hung one would block the start."""
    return [path for path in dict.fromkeys(mount_points) if _means(path, desired) == "ro"]


def _means(path: str, desired: dict[str, str]) -> str:
    above = path
    while True:
        if above in desired and not (above == "/" and any(_below(path, one) for one in _NEVER_REMOUNTED)):
            return desired[above]
        if above == "/":
            return ""
        above = os.path.dirname(above)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _hide(path: str) -> None:
    if os.path.isdir(path):
        _mount("tmpfs", path, kind="tmpfs", flags=MS_NOSUID | MS_NODEV | MS_RDONLY, data="mode=000,size=4k")
    else:
        _mount("/dev/null", path, flags=MS_BIND)


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        found = [line.split(" ")[4] for line in file]
    return [path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\") for path in found]


def bound(unit: Unit) -> frozenset[int]:
    """Reduce the bounding set; return the remaining capabilities."""
    everything = frozenset(range(len(CAPABILITIES)))
    if (
        not any(unit.raw("Service", key) for key in _TAKEN_BY)
        and "CapabilityBoundingSet" not in unit.sections["Service"]
    ):
        return everything  # and ctypes, which takes its time, is not imported
    desired = capabilities(unit, "CapabilityBoundingSet", default=everything)
    for key, names in _TAKEN_BY.items():
        if unit.flag("Service", key):
            desired -= {CAPABILITIES.index(name) for name in names}
    libc = _libc()
    left = {number for number in everything if libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1}
    for number in sorted(left - desired):
        _checked(libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), "prctl(PR_CAPBSET_DROP)", exit_status=218)
    return desired & frozenset(left)


def keep_for(desired: frozenset[int]) -> None:
    if desired:
        _checked(_libc().prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl(PR_SET_KEEPCAPS)", exit_status=218)


def raise_ambient(desired: frozenset[int]) -> None:
    """Set exactly these ambient capabilities, after the change of user."""
    import ctypes

    if not desired:
        return
    libc = _libc()
    bits = sum(1 << number for number in desired)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable, of the first 32 and of the others.
    data = (ctypes.c_uint32 * 6)(low, low, low, high, high, high)
    _checked(libc.capset(header, data), "capset", exit_status=218)
    for number in sorted(desired):
        _checked(libc.prctl(_PR_CAP_AMBIENT, _RAISE, number, 0, 0), "prctl(PR_CAP_AMBIENT)", exit_status=218)


def no_new_privileges(unit: Unit) -> None:
    if unit.flag("Service", "NoNewPrivileges"):
        _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)", exit_status=218)


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str, *, exit_status: int = 226) -> None:
    if result != 0:
        import ctypes

        raise ConfineError(f"{what}: {os.strerror(ctypes.get_errno())}", exit_status=exit_status)


def _mount(
    source: str | None, target: str, *, kind: str | None = None, flags: int = 0, data: str | None = None
) -> None:
    import ctypes

    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(result, f"mount {target}")
