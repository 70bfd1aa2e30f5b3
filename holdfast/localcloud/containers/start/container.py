"""
One container: its image, its sources opened with the user's rights, its root built by runc, its mounts.

runc runs in process and mount namespaces that end with this program, on a private tmpfs and a read-only cgroup
hierarchy. Only the container's mount namespace remains, while a process holds it: there is nothing to clean up.
"""

import grp
import json
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import mounts as _mounts
from . import reference, spec, squashfs
from . import system as _system
from .errors import RefusedError
from .inside import ContainerRoot, PreparedMount
from .mounts import ContainerMount
from .request import StepRequest

_STAGE = Path("/run/holdfast/container")
_NODE_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/machine-id")
_RUNC_TIMEOUT_S = 10
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True)
class ContainerImage:
    root: Path
    config: Mapping[str, Any]


def find_image(request: StepRequest) -> ContainerImage:
    given = request.image
    if given.startswith((".", "/")):
        root = squashfs.unpack(given, request=request)
        return ContainerImage(root=root, config=squashfs.config(root))
    name = reference.canonical(given)
    store = Path(request.images)
    try:
        digest = os.readlink(store / "refs" / reference.file_name(name)).rpartition("/")[2]  # noqa: PTH115
        config: dict[str, Any] = json.loads((store / digest / "config.json").read_text())
    except OSError as error:
        raise RefusedError(
            f"failed to import docker image: {given}: the local cluster has no image {name}; "
            f"run: {reference.adding(name)}, or name one that 'holdfast images list' shows"
        ) from error
    return ContainerImage(root=store / digest / "rootfs", config=config)


def open_mounts(request: StepRequest) -> list[PreparedMount]:
    desired = list(_mounts.parse(request.mounts, folder=request.folder))
    if request.mount_home:
        desired.insert(0, ContainerMount(source=request.user.home, target=request.user.home))
    if request.script:
        desired.append(
            ContainerMount(source=request.script, target=request.script, attributes=frozenset({"ro", "nodev"}))
        )
    return [_open(mount, request=request) if mount.source else _tmpfs(mount, request=request) for mount in desired]


def _tmpfs(mount: ContainerMount, *, request: StepRequest) -> PreparedMount:
    attributes = sum(_system.ATTRIBUTES[name] for name in mount.attributes | {"nosuid", "nodev"})
    options = {"uid": str(request.user.uid), "gid": str(request.user.gid), "mode": "755"}
    return PreparedMount(mount=mount, tree=_system.new_tmpfs(attributes=attributes, options=options), is_directory=True)


def _open(mount: ContainerMount, *, request: StepRequest) -> PreparedMount:
    try:
        with _system.acting_as(request.user):
            fd = _system.open_path(mount.source)
    except FileNotFoundError:
        raise RefusedError(f"--container-mounts: source path does not exist: {mount.source}") from None
    except OSError as error:
        raise RefusedError(f"--container-mounts: {mount.source}: {error.strerror}") from error
    is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
    attributes = sum(_system.ATTRIBUTES[name] for name in mount.attributes | {"nosuid"})
    tree = _system.clone_tree(fd, attributes=attributes)
    os.close(fd)
    return PreparedMount(mount=mount, tree=tree, is_directory=is_directory)


def build(request: StepRequest, *, image: ContainerImage) -> int:
    """Run runc, and return a descriptor of the container's mounts. The caller is process 1 of its process namespace."""
    _system.mount(source=None, target="/", flags=_system.MS_REC | _system.MS_PRIVATE)
    _STAGE.mkdir(parents=True, exist_ok=True, mode=0o755)
    private = _system.MS_NOSUID | _system.MS_NODEV
    _system.mount(source="container", target=str(_STAGE), kind="tmpfs", flags=private, data="mode=755")
    for name in ("upper", "work", "root", "state", "proc", "files"):
        (_STAGE / name).mkdir()
    _system.mount(source="/proc", target=str(_STAGE / "proc"), flags=_system.MS_BIND | _system.MS_REC)
    _system.mount(source="proc", target="/proc", kind="proc")
    # runc asks for a hierarchy even where it is told to do without: a read-only one is where it makes nothing.
    _system.mount(source="cgroup2", target="/sys/fs/cgroup", kind="cgroup2")
    frozen = _system.MS_REMOUNT | _system.MS_BIND | _system.MS_RDONLY
    _system.mount(source=None, target="/sys/fs/cgroup", flags=frozen)
    layers = f"lowerdir={image.root},upperdir={_STAGE}/upper,workdir={_STAGE}/work,index=off"
    _system.mount(source="overlay", target=str(_STAGE / "root"), kind="overlay", flags=private, data=layers)
    config = spec.runc_config(
        root=str(_STAGE / "root"),
        process_files=str(_STAGE / "proc"),
        files=_files(request, image=image),
        uid=request.user.uid,
        gid=request.user.gid,
    )
    (_STAGE / "config.json").write_text(json.dumps(config))
    pid = _create()
    return os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _files(request: StepRequest, *, image: ContainerImage) -> dict[str, str]:
    shown = {path: path for path in _NODE_FILES if Path(path).is_file() and not Path(path).is_symlink()}
    user = request.user
    try:
        account = pwd.getpwuid(user.uid)
        entry = f"{account.pw_name}:x:{user.uid}:{user.gid}:{account.pw_gecos}:{account.pw_dir}:/bin/sh"
    except KeyError:
        entry = f"{user.name or 'user'}:x:{user.uid}:{user.gid}::{user.home}:/bin/sh"
    try:
        group = grp.getgrgid(user.gid).gr_name
    except KeyError:
        group = "user"
    for name, line in (("passwd", entry), ("group", f"{group}:x:{user.gid}:")):
        path = _STAGE / "files" / name
        path.write_text(spec.with_account(squashfs.file_of_etc(image.root, name), entry=line))
        shown[f"/etc/{name}"] = str(path)
    return shown


def _create() -> int:
    program = shutil.which("runc", path=_PATH)
    if program is None:
        raise RefusedError("there is no runc on this node; install Debian's package runc on the machine")
    # "rootless" is runc's word for doing without cgroups that it may not write; it still is root.
    command = [program, "--rootless=true", "--root", str(_STAGE / "state"), "create"]
    command += ["--bundle", str(_STAGE), "--pid-file", str(_STAGE / "pid"), "step"]
    log = _STAGE / "runc.log"
    with log.open("wb") as output:  # a file and no pipe: the waiting container keeps its end open
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=_RUNC_TIMEOUT_S, check=False
        )
    if done.returncode:
        last = (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise RefusedError(f"container start failed: runc: {last}")
    return int((_STAGE / "pid").read_text())


def furnish(request: StepRequest, *, image: ContainerImage, mounts: int, prepared: list[PreparedMount]) -> str:
    """Enter the container and create the user's files. Return the working directory of tasks."""
    _system.join_mounts(mounts)
    os.umask(0o022)
    inside = ContainerRoot(user=request.user)
    default = spec.working_directory(image.config)
    inside.own_directory(request.user.home)
    inside.own_directory(default)
    inside.mount(prepared)
    if request.read_only:
        flags = _system.MS_REMOUNT | _system.MS_BIND | _system.MS_RDONLY | _system.MS_NOSUID | _system.MS_NODEV
        _system.mount(source=None, target="/", flags=flags)
    return "/" + request.workdir.lstrip("/") if request.workdir else default
