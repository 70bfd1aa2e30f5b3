"""
Checkpoints in storage: which are complete, and whether their bytes are what was written.

    <folder>/step-<number>/            what torch.distributed.checkpoint writes, and
                           manifest.json   name, size and SHA-256 of every file
                           COMPLETE        the SHA-256 of the manifest; written last, removed first

A folder without a COMPLETE that matches is no checkpoint: it is ignored, and cleared away by the next job.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast_runtime.snapshots.layout import SnapshotError

FORMAT = 1
MANIFEST = "manifest.json"
COMPLETE = "COMPLETE"
_NAME = re.compile(r"step-(\d{9,})")
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class FileFacts:
    """Expected size and digest of a file."""

    size: int
    """In bytes."""
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Files of a checkpoint."""

    step: int
    world_size: int
    files: Mapping[str, FileFacts]


def step_folder(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}"


def complete_steps(folder: Path) -> list[int]:
    found = _steps(folder)
    return sorted(step for step, path in found.items() if _is_complete(path))


def newest_complete(folder: Path) -> int:
    """The newest complete checkpoint's step; -1 without one."""
    return max(complete_steps(folder), default=-1)


def facts(path: Path) -> FileFacts:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return FileFacts(size, digest.hexdigest())


def complete(folder: Path, manifest: Manifest) -> None:
    path = step_folder(folder, manifest.step)
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1, sort_keys=True)
    _write(path / MANIFEST, text)
    _sync(path)
    _write(path / COMPLETE, _digest(text))
    _sync(path)
    _sync(folder)


def read_manifest(folder: Path, step: int) -> Manifest:
    path = step_folder(folder, step)
    if not _is_complete(path):
        others = ", ".join(map(str, complete_steps(folder))) or "none"
        raise SnapshotError(f"there is no complete checkpoint of step {step} in {folder}; complete are: {others}")
    value: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    if value["format"] != FORMAT:
        raise SnapshotError(f"{path} has format {value['format']}, and this is format {FORMAT}")
    files = {name: FileFacts(**item) for name, item in value["files"].items()}
    return Manifest(step=value["step"], world_size=value["world_size"], files=files)


def damage(folder: Path, manifest: Manifest, names: list[str]) -> list[str]:
    path = step_folder(folder, manifest.step)
    problems = []
    for name in names:
        expected = manifest.files[name]
        if not (path / name).exists():
            problems.append(f"{name} is missing")
        elif (path / name).stat().st_size != expected.size:
            problems.append(f"{name} has {(path / name).stat().st_size} bytes and {expected.size} were written")
        elif facts(path / name) != expected:
            problems.append(f"{name} does not match its SHA-256")
    return problems


def verify(folder: Path, step: int) -> Manifest:
    """Read a whole checkpoint. Raises SnapshotError when it is not what was written."""
    manifest = read_manifest(folder, step)
    if problems := damage(folder, manifest, sorted(manifest.files)):
        raise SnapshotError(f"the checkpoint of step {step} in {folder} is damaged: {'; '.join(problems)}")
    return manifest


def clear_incomplete(folder: Path) -> list[int]:
    left = [(step, path) for step, path in _steps(folder).items() if not _is_complete(path)]
    for _, path in left:
        shutil.rmtree(path)
    return sorted(step for step, _ in left)


def keep_newest(folder: Path, count: int) -> list[int]:
    old = complete_steps(folder)[:-count]
    for step in old:
        path = step_folder(folder, step)
        (path / COMPLETE).unlink()
        shutil.rmtree(path)
    return old


def _steps(folder: Path) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    names = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    return {int(match[1]): path for path, match in names if match}


def _is_complete(path: Path) -> bool:
    try:
        return (path / COMPLETE).read_text() == _digest((path / MANIFEST).read_text())
    except (OSError, ValueError):
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
