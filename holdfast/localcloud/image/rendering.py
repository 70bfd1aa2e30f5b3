"""Rendering of the layer to a directory, once per content."""

import hashlib
import json
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.home import made_once
from holdfast.localcloud.nodes import Mount

from . import interpreter as _interpreter
from . import services
from .layers import MOUNT_POINTS, PROGRAMS, LayerEntry, layer

ORCHESTRATORS = ("slurm", "eks")


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    path: Path
    """For ``NodeSpec.image``."""
    mounts: tuple[Mount, ...]
    """Folders of the machine that the image's Python needs."""
    notes: tuple[str, ...]
    """Parts taken from the machine instead of the AMI; nodes have them in /etc/holdfast-image."""
    mount_points: tuple[str, ...] = MOUNT_POINTS
    """Directories on which HyperPod mounts an instance's disks."""


def build(directory: Path, *, orchestrator: str) -> NodeImage:
    """
    Render the layer below ``directory``, or reuse it. Raise ValueError for an unknown orchestrator.

    Args:
        directory: Not on the disk of the machine's root: a folder below ``Fleet.directory``.
        orchestrator: ``slurm`` or ``eks``.
    """
    if orchestrator not in ORCHESTRATORS:
        raise ValueError(f"orchestrator must be one of {', '.join(ORCHESTRATORS)}, got {orchestrator!r}")
    interpreter = _interpreter.find(orchestrator)
    programs_python = _programs_python(interpreter)
    entries = layer(orchestrator=orchestrator, interpreter=interpreter, programs_python=programs_python)
    place = directory / f"{orchestrator}-{_digest(entries)}"
    if not place.is_dir():
        with made_once(place) as fresh:
            _write(fresh, entries)
            _make_host_key(fresh)
            _compile(fresh, python=programs_python)
    return NodeImage(path=place, mounts=interpreter.mounts, notes=(f"python3 is {interpreter.note}",))


def _programs_python(interpreter: _interpreter.Interpreter) -> str:
    own = Path("/usr/bin/python3")
    return str(own.resolve()) if own.exists() else str(interpreter.executable)


def _digest(entries: dict[str, LayerEntry]) -> str:
    described = [
        (
            path,
            hashlib.sha256(one.content or b"").hexdigest(),
            one.content is None,
            one.link,
            one.mode,
            one.owner,
            one.hidden,
        )
        for path, one in sorted(entries.items())
    ]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def _write(root: Path, entries: dict[str, LayerEntry]) -> None:
    owners = _owners()
    for path, entry in sorted(entries.items()):
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.hidden:
            if os.geteuid() == 0:  # a "whiteout" of overlayfs
                os.mknod(target, stat.S_IFCHR, os.makedev(0, 0))
            continue
        if entry.link is not None:
            target.symlink_to(entry.link)
            continue
        if entry.content is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(entry.content)
        target.chmod(entry.mode)
        if os.geteuid() == 0 and entry.owner != "root":
            uid = owners.get(entry.owner, 0)
            os.chown(target, uid, uid)


def _make_host_key(root: Path) -> None:
    """Make one key for all nodes of a fleet: one per boot would take longer than the boot."""
    key = root / "etc/ssh/ssh_host_ed25519_key"
    if shutil.which("ssh-keygen") and not key.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "holdfast", "-f", str(key)]
        subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL)


def _owners() -> dict[str, int]:
    found = {fields[1]: int(fields[2]) for line in services.SYSUSERS.splitlines() if (fields := line.split())[0] == "u"}
    return found | {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}


def _compile(root: Path, *, python: str) -> None:
    command = [python, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(root)]
    subprocess.run([*command, "-p", "/", str(root / PROGRAMS[1:])], check=True, timeout=60, stdout=subprocess.DEVNULL)
