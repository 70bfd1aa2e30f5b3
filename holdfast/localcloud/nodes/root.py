"""Content of a node's root: shared, hidden, replaced and added files of the machine. Pure, but for reading them."""

import hashlib
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast.localcloud.nodes.kernel import plan
from holdfast.localcloud.nodes.kernel.mounts import mount_entries

from .spec import FileSpec, Mount, NodeError, NodeSpec

SHARED = frozenset({"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "var", "nix"})
"""Names below / that a node shares with the machine; every other one is hidden."""

_OWN_DIRECTORIES = {
    "/boot": 0o755, "/dev": 0o755, "/home": 0o755, "/media": 0o755, "/mnt": 0o755, "/proc": 0o555, "/root": 0o711,
    "/run": 0o755, "/srv": 0o755, "/sys": 0o555, "/tmp": 0o1777,  # noqa: S108
    "/var/tmp": 0o1777, "/var/log": 0o755, "/var/spool": 0o755, "/var/mail": 0o2775,  # noqa: S108
}  # fmt: skip
"""Present in every node, empty at its birth. /root lets others through: an interpreter may be mounted below it."""

_PRIVATE = (
    "/etc/munge", "/etc/mysql", "/etc/slurm", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers.d", "/etc/systemd/system",
    "/var/backups", "/var/lib/munge", "/var/lib/mysql", "/var/lib/slurm",
)  # fmt: skip
"""
Hidden where the machine has them: its own keys, Slurm, services, database and its settings, rights, copies of its
password file.
"""

_PSEUDO = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
    "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "ramfs", "rpc_pipefs", "securityfs", "selinuxfs",
    "squashfs", "sysfs", "tmpfs", "tracefs",
})  # fmt: skip
_ENGINES = ("/var/lib/docker", "/var/lib/containers", "/var/lib/containerd", "/var/lib/kubelet", "/var/snap")
_LOGIN_UIDS = range(1000, 60000)  # Debian gives packages 60000-64999 and counts nobody from 65534
UBUNTU_UID = 1000
SHIPPING_LOCK = "/run/holdfast/shipping.lock"
"""Held by the shipper of the node's events: its health agent, or the control plane from outside."""
JOBS_SHIPPING_LOCK = "/run/holdfast/shipping-jobs.lock"
"""The same, for the events of jobs."""

REACHABLE = "/run/holdfast/lustre"
"""Below it stand file systems that root of the node can mount: DNS name, then mount name."""
REACHABLE_NFS = "/run/holdfast/nfs"
"""The same for what is mounted as NFS: DNS name, then exported path."""


def _below(path: str, parents: Iterable[str]) -> bool:
    return any(path == parent or path.startswith(parent.rstrip("/") + "/") for parent in parents)


def disk_mounts(mountinfo: str) -> list[str]:
    """Return mount points below / with parts of the system, parents first: overlays do not include them."""
    found = set()
    for entry in mount_entries(mountinfo):
        at, kind = entry.point, entry.kind
        hidden = _below(at, [*_OWN_DIRECTORIES, *_PRIVATE, *_ENGINES])
        if at.split("/")[1] in SHARED and kind not in _PSEUDO and not kind.startswith("fuse") and not hidden:
            found.add(at)
    return sorted(found)


def hidden_names(root: Path) -> list[str]:
    """Return top-level names to white out; directories are emptied instead, unless the machine has links there."""
    return sorted(
        entry.name
        for entry in root.iterdir()
        if entry.name not in SHARED and (entry.is_symlink() or f"/{entry.name}" not in _OWN_DIRECTORIES)
    )


def emptied_directories(home: Path, *, image: Path | None = None) -> list[str]:
    """Return directories whose content is hidden from nodes, except those that ``image`` replaces."""
    candidates = [*_OWN_DIRECTORIES, *_PRIVATE]
    if home.parts[1] in SHARED:
        candidates.append(str(home))
    if image is not None:
        replaced = [path for path in candidates if (image / path[1:]).is_symlink() or (image / path[1:]).is_file()]
        candidates = [path for path in candidates if path not in replaced]
    return [path for path in candidates if os.path.realpath(path) == path and Path(path).is_dir()]


def strip_accounts(*, passwd: str, group: str) -> tuple[str, str]:
    """Return the machine's system accounts plus ``ubuntu``, as in HyperPod's image."""
    kept, dropped = [], set()
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) < 7 or int(fields[2]) in _LOGIN_UIDS or fields[0] == "ubuntu":
            dropped.add(fields[0])
        else:
            kept.append(line)
    groups = []
    for line in group.splitlines():
        fields = line.split(":")
        if len(fields) == 4 and int(fields[2]) not in _LOGIN_UIDS and fields[0] != "ubuntu":
            people = [name for name in fields[3].split(",") if name and name not in dropped]
            groups.append(":".join([*fields[:3], ",".join(people)]))
    kept.append(f"ubuntu:x:{UBUNTU_UID}:{UBUNTU_UID}:Ubuntu:/home/ubuntu:/bin/bash")
    groups.append(f"ubuntu:x:{UBUNTU_UID}:")
    return "\n".join(kept) + "\n", "\n".join(groups) + "\n"


def add_accounts(sysusers: str, *, passwd: str, group: str) -> tuple[str, str]:
    """Return the accounts of an image, in the syntax of sysusers.d(5)."""
    users = {line.split(":")[0] for line in passwd.splitlines()}
    groups = {fields[0]: fields for fields in (line.split(":") for line in group.splitlines())}
    for line in sysusers.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        kind, name, number, *more = shlex.split(line)
        if kind in ("u", "g") and name not in groups:
            groups[name] = [name, "x", number, ""]
        if kind == "u" and name not in users:
            gecos, home, shell = more
            passwd += f"{name}:x:{number}:{number}:{gecos}:{home}:{shell}\n"
        if kind == "m":
            members = [one for one in groups[number][3].split(",") if one]
            groups[number][3] = ",".join(dict.fromkeys([*members, name]))
    return passwd, "".join(":".join(fields) + "\n" for fields in groups.values())


def shadow_for(passwd: str) -> str:
    return "".join(f"{line.split(':')[0]}:*:19000:0:99999:7:::\n" for line in passwd.splitlines())


def gshadow_for(group: str) -> str:
    return "".join(f"{line.split(':')[0]}:*::{line.split(':')[3]}\n" for line in group.splitlines())


def hosts(*, hostname: str, address: str) -> str:
    return f"127.0.0.1 localhost\n::1 localhost ip6-localhost\n{address} {hostname}\n"


def name_services(nsswitch: str) -> str:
    """Return nsswitch.conf with files only: a resolver timeout would cost a job 20 seconds."""
    ours = ("passwd", "group", "shadow", "gshadow", "hosts")
    others = [line for line in nsswitch.splitlines() if line.split(":")[0].strip() not in ours]
    return "".join(f"{name}: files\n" for name in ours) + "\n".join(others) + "\n"


class Accounts:
    def __init__(self, *, passwd: str, group: str) -> None:
        self._users = {fields[0]: int(fields[2]) for fields in (line.split(":") for line in passwd.splitlines())}
        self._groups = {fields[0]: int(fields[2]) for fields in (line.split(":") for line in group.splitlines())}

    def ids(self, owner: str) -> tuple[int, int]:
        user, _, group = owner.partition(":")
        return self._number(user, self._users, "user"), self._number(group or user, self._groups, "group")

    def has(self, user: str) -> bool:
        return user in self._users

    def _number(self, name: str, table: Mapping[str, int], what: str) -> int:
        if name.isdigit():
            return int(name)
        if name not in table:
            raise NodeError(f"no {what} {name!r} on the node; use one of {', '.join(sorted(table))} or a number")
        return table[name]


def _text(path: str, default: str = "") -> str:
    try:
        return Path(path).read_text(errors="surrogateescape")
    except FileNotFoundError:
        return default


def root_contents(spec: NodeSpec, *, kept: Path | None) -> tuple[list[plan.Directory], list[plan.PlannedFile]]:
    """Return directories and files of a node's root. A ``kept`` root has its accounts and names."""
    locks = dict.fromkeys((SHIPPING_LOCK, JOBS_SHIPPING_LOCK), FileSpec(content=b"", mode=0o600))
    own = {**locks, **spec.files}
    if kept is not None:
        accounts = Accounts(passwd=_text(f"{kept}/etc/passwd"), group=_text(f"{kept}/etc/group"))
        return _runtime_directories(accounts), [_file(path, file, accounts) for path, file in own.items()]
    passwd, group = strip_accounts(passwd=_text("/etc/passwd"), group=_text("/etc/group"))
    if spec.image is not None:
        for path in sorted((spec.image / "usr/lib/sysusers.d").glob("*.conf")):
            passwd, group = add_accounts(path.read_text(), passwd=passwd, group=group)
    accounts = Accounts(passwd=passwd, group=group)
    files = {**_system_files(spec, passwd=passwd, group=group), **own}
    directories = _directories(accounts) + _runtime_directories(accounts)
    return directories, [_file(path, file, accounts) for path, file in files.items()]


def _file(path: str, file: FileSpec, accounts: Accounts) -> plan.PlannedFile:
    uid, gid = accounts.ids(file.owner)
    return plan.PlannedFile(path=path, content=file.content, mode=file.mode, uid=uid, gid=gid)


def _system_files(spec: NodeSpec, *, passwd: str, group: str) -> dict[str, FileSpec]:
    machine_id = hashlib.sha256(spec.instance_id.encode()).hexdigest()[:32]
    texts = {
        "/etc/passwd": passwd,
        "/etc/group": group,
        "/etc/hostname": spec.hostname + "\n",
        "/etc/hosts": hosts(hostname=spec.hostname, address=spec.address),
        "/etc/resolv.conf": "",
        "/etc/nsswitch.conf": name_services(_text("/etc/nsswitch.conf")),
        "/etc/machine-id": machine_id + "\n",
        "/etc/fstab": "",
    }
    files = {path: FileSpec(content=text.encode(errors="surrogateescape")) for path, text in texts.items()}
    for path, text in {"/etc/shadow": shadow_for(passwd), "/etc/gshadow": gshadow_for(group)}.items():
        files[path] = FileSpec(content=text.encode(errors="surrogateescape"), mode=0o640, owner="root:root")
    for name in (".bashrc", ".profile", ".bash_logout"):
        if (skeleton := Path("/etc/skel", name)).is_file():
            files[f"/home/ubuntu/{name}"] = FileSpec(content=skeleton.read_bytes(), owner="ubuntu:ubuntu")
    return files


def _directory(path: str, mode: int, owner: tuple[int, int] = (0, 0)) -> plan.Directory:
    return plan.Directory(path=path, mode=mode, uid=owner[0], gid=owner[1])


def _directories(accounts: Accounts) -> list[plan.Directory]:
    # Mount points are made with the mounts; chmod on /proc or /sys would reach the mounted file system.
    mounted = ("/proc", "/sys", "/dev", "/run", "/tmp")  # noqa: S108
    found = [_directory(path, mode) for path, mode in _OWN_DIRECTORIES.items() if path not in mounted]
    found.append(_directory("/home/ubuntu", 0o750, (UBUNTU_UID, UBUNTU_UID)))
    if accounts.has("munge"):
        munge = accounts.ids("munge")
        found += [_directory(path, 0o700, munge) for path in ("/etc/munge", "/var/lib/munge", "/var/log/munge")]
    return found


def _runtime_directories(accounts: Accounts) -> list[plan.Directory]:
    # Whatever is bound below the second is for root alone: a node's users may use what is mounted, not all that can be.
    found = [_directory("/run/lock", 0o1777), _directory("/run/holdfast", 0o711)]
    found += [_directory(path, 0o700) for path in (REACHABLE, REACHABLE_NFS)]
    found += [_directory(path, 0o755) for path in ("/run/sshd", "/run/holdfast/units")]
    if accounts.has("munge"):
        found.append(_directory("/run/munge", 0o755, accounts.ids("munge")))
    if accounts.has("slurm"):
        found.append(_directory("/run/slurm", 0o755, accounts.ids("slurm")))
    return found


def python_mounts(*, at: str, prefix: Path = Path(sys.prefix), base: Path = Path(sys.base_prefix)) -> tuple[Mount, ...]:
    """Return the mounts that run this process's Python environment inside a node as ``at``/bin/python."""
    bases = dict.fromkeys((str(base), str(base.resolve())))  # both: the environment's links may name either
    unseen = [path for path in bases if path.split("/")[1] not in SHARED]
    sources = {at: prefix.resolve(), **{path: base.resolve() for path in unseen}}
    return tuple(Mount(source=source, target=target, read_only=True) for target, source in sources.items())
