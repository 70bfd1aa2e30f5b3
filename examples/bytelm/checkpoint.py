"""
Atomic checkpoints, and a resume that reports damaged ones.

A folder holds ``step-N.pt`` files and ``latest``, a JSON list of them, newest first, with their SHA-256. A file is
written under a hidden name, synced and renamed; only then ``latest`` names it, in the same way.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from settings import RefusedError

Identity = Mapping[str, "int | str"]
"""What must be equal for a resume to continue the same run."""


def save(*, folder: Path, step: int, state: Mapping[str, torch.Tensor], identity: Identity, keep: int) -> Path:
    """Write the checkpoint of ``step`` and delete all but the newest ``keep``."""
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save({"step": step, "identity": dict(identity), "state": dict(state)}, buffer)
    content = buffer.getbuffer()
    path = folder / f"step-{step}.pt"
    _write(path, content)
    newest = {"step": step, "file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    older = [entry for entry in _listed(folder) if entry["step"] < step] if (folder / "latest").exists() else []
    kept = [newest, *older][:keep]
    _write(folder / "latest", (json.dumps(kept, indent=2) + "\n").encode())
    names = {entry["file"] for entry in kept}
    for old in folder.glob("step-*.pt"):
        if old.name not in names:
            old.unlink(missing_ok=True)
    return path


def load(*, folder: Path, identity: Identity, allow_older: bool) -> tuple[dict[str, Any] | None, str]:
    """Newest checkpoint, or None; and the damage of newer ones, if any."""
    files = sorted(path.name for path in folder.glob("step-*.pt"))
    if not (folder / "latest").exists():
        if files:
            raise RefusedError(
                f"{folder} has checkpoints ({', '.join(files)}) but no file 'latest', so none can be trusted;"
                " restore it, or move them away to start from step 0"
            )
        return None, ""
    damage: list[str] = []
    for entry in _listed(folder):
        checkpoint = _read(folder / entry["file"], str(entry["sha256"]), damage)
        if checkpoint is not None:
            _check_identity(checkpoint["identity"], identity, folder)
            if damage and not allow_older:
                raise RefusedError(
                    f"{'; '.join(damage)}; step {entry['step']} is whole: give --allow-older-checkpoint to resume there"
                )
            return checkpoint, "; ".join(damage)
    raise RefusedError(f"no checkpoint in {folder} is whole: {'; '.join(damage)}; move them away to start from step 0")


def _listed(folder: Path) -> list[dict[str, Any]]:
    path = folder / "latest"
    try:
        entries = json.loads(path.read_text())
        return [{"step": int(e["step"]), "file": str(e["file"]), "sha256": str(e["sha256"])} for e in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{path} cannot be read ({error}); restore it, or move the checkpoints away") from error


def _read(path: Path, sha256: str, damage: list[str]) -> dict[str, Any] | None:
    try:
        content = path.read_bytes()
    except OSError as error:
        damage.append(f"{path.name} cannot be read ({error.strerror})")
        return None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        damage.append(f"{path.name} is damaged (SHA-256 {found[:12]}, expected {sha256[:12]})")
        return None
    checkpoint: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return checkpoint


def _check_identity(saved: Identity, given: Identity, folder: Path) -> None:
    different = [f"{key} {saved.get(key)} (now {given[key]})" for key in given if saved.get(key) != given[key]]
    if different:
        raise RefusedError(
            f"the checkpoint in {folder} is of another run: {', '.join(different)};"
            " give the same settings or another --checkpoints folder"
        )


def _write(path: Path, content: bytes | memoryview) -> None:
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
