"""
Programs of a virtual environment at its path on nodes.

A console script starts with its interpreter's path on this machine, so nodes get a folder of programs with the path
exchanged. With an activated environment, a script runs with that environment's interpreter.
"""

import hashlib
import os
import shutil
import stat
import sys
from pathlib import Path

from holdfast.localcloud.home import made_once
from holdfast.localcloud.nodes import Mount

TRAINING_ENVIRONMENT = "/opt/holdfast/env"
"""Path of this process's Python environment on nodes, for training jobs."""
ORIGINALS_AT = "/opt/holdfast/env-programs"
"""Path of the unchanged folder on nodes: programs that are no scripts are links to it."""
_NOT_OF_NODES = frozenset({"holdfast", "holdfast-agent", "holdfast-run"})
"""Programs of Holdfast for this machine; nodes have theirs from the lifecycle."""
_LARGEST_SCRIPT = 1 << 20


def environment_programs(directory: Path, *, at: str, prefix: Path = Path(sys.prefix)) -> tuple[Mount, ...]:
    """
    Return the mounts over an environment that nodes see at ``at``.

    Args:
        directory: Holds the folder of programs, rebuilt when the environment changed.
    """
    source = prefix.resolve() / "bin"
    place = directory / f"programs-{_digest(source, prefix=prefix, at=at)}"
    if not place.is_dir():
        with made_once(place) as fresh:
            for path in _programs(source):
                _place(path, fresh / path.name, prefixes=(str(prefix), str(prefix.resolve())), at=at)
    return (
        Mount(source=source, target=ORIGINALS_AT, read_only=True),
        Mount(source=place, target=f"{at}/bin", read_only=True),
    )


def _programs(source: Path) -> list[Path]:
    return sorted(path for path in source.iterdir() if path.name not in _NOT_OF_NODES)


def _digest(source: Path, *, prefix: Path, at: str) -> str:
    digest = hashlib.sha256(f"{prefix}\0{at}".encode())
    for path in _programs(source):
        info = path.lstat()
        digest.update(f"{path.name}\0{info.st_size}\0{info.st_mtime_ns}\0{info.st_mode}\n".encode())
    return digest.hexdigest()[:16]


def _place(path: Path, target: Path, *, prefixes: tuple[str, ...], at: str) -> None:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        target.symlink_to(_exchanged(os.fsencode(path.readlink()), prefixes=prefixes, at=at).decode())
        return
    if not stat.S_ISREG(info.st_mode):
        return
    content = path.read_bytes() if info.st_size <= _LARGEST_SCRIPT else b""
    if content and b"\0" not in content[:4096]:
        target.write_bytes(_with_interpreter(_exchanged(content, prefixes=prefixes, at=at), at=at))
        target.chmod(stat.S_IMODE(info.st_mode))
    elif path.name.startswith("python"):
        # A copied interpreter finds its environment by the folder that it lies in.
        shutil.copy2(path, target)
    else:
        target.symlink_to(f"{ORIGINALS_AT}/{path.name}")


def _with_interpreter(content: bytes, *, at: str) -> bytes:
    first, _, rest = content.partition(b"\n")
    if not first.startswith(f"#!{at}/bin/python".encode()):
        return content
    python = f"${{VIRTUAL_ENV:-${{CONDA_PREFIX:-{at}}}}}/bin/python"
    # To Python the two lines after the first are a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n".encode() + rest


def _exchanged(content: bytes, *, prefixes: tuple[str, ...], at: str) -> bytes:
    for prefix in dict.fromkeys(prefixes):
        content = content.replace(f"{prefix}/bin".encode(), f"{at}/bin".encode())
    return content
