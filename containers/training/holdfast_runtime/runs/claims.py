"""Whose a run folder is, written once at the start and compared at each later one."""

import json
import os
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast_runtime.runs.submission import GIVEN, Submission, find_submission

NAME = "SUBMISSION"
FIELDS = frozenset({"identity", "job", "start", "restarts", "closed"})


class RunFolderError(Exception):
    """The folder belongs to another submission; the message says whose it is and what to do."""


def claim(folder: str | Path, submission: Submission | None = None) -> None:
    """
    Make the folder this submission's, or find that it is. Any process of the job may ask, at any time.

    Args:
        submission: Default: that of this process; outside of Slurm nothing is claimed and nothing refused.

    Raises:
        RunFolderError: it is another submission's.
    """
    mine = submission or find_submission()
    if mine is None:
        return
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    if not path.exists():
        _refuse_strangers(folder)
        _write_once(path, mine)
    found = _read(path)
    owner = Submission(**{name: found[name] for name in ("identity", "job", "start", "restarts")})
    if owner.identity != mine.identity:
        raise RunFolderError(_refusal(folder, owner=owner, mine=mine))
    if found["closed"] or mine.is_another_start(owner):
        # Its number was given again, so the job that had it is gone for good, and nobody can follow it here.
        if not found["closed"]:
            _replace(path, {**found, "closed": True})
        raise RunFolderError(_refusal(folder, owner=owner, mine=mine))


def _refuse_strangers(folder: Path) -> None:
    checkpoints = sorted(entry.name for entry in folder.iterdir() if entry.name.startswith("step-"))
    if checkpoints:
        raise RunFolderError(
            f"{folder} has checkpoints ({', '.join(checkpoints[:3])}) and no file {NAME} that names their job; to "
            f"go on with them: python -m holdfast_runtime.runs --adopt {folder}; otherwise give another folder"
        )


def adopt(folder: Path, submission: Submission) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / NAME, _content(submission))


def _refusal(folder: Path, *, owner: Submission, mine: Submission) -> str:
    name = owner.identity.removeprefix("submission ")
    on_purpose = (
        f"set {GIVEN}={name}" if owner.identity.startswith("submission ") else f"adopt it with --adopt {folder}"
    )
    who = mine.identity if mine.identity != owner.identity else f"another job of the same number ({mine.identity})"
    return (
        f"{folder} belongs to {owner.identity}, and this is {who}; give it a folder of its own, or, to go on with "
        f"these checkpoints on purpose, {on_purpose}"
    )


def _content(submission: Submission) -> dict[str, Any]:
    return {"format": 1, **asdict(submission), "claimed_ns": time.time_ns(), "closed": False}


def _write_once(path: Path, submission: Submission) -> None:
    unfinished = _written_beside(path, _content(submission))
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return
    finally:
        unfinished.unlink()


def _replace(path: Path, content: dict[str, Any]) -> None:
    _written_beside(path, content).replace(path)


def _written_beside(path: Path, content: dict[str, Any]) -> Path:
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with unfinished.open("w") as file:
        json.dump(content, file)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    return unfinished


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        why = "" if isinstance(found, dict) and found.keys() >= FIELDS else "it lacks fields"
    except (OSError, ValueError) as error:
        found, why = {}, str(error)
    if why:
        raise RunFolderError(
            f"{path} does not say whose the folder is ({why}); restore it, or adopt the folder with: "
            f"python -m holdfast_runtime.runs --adopt {path.parent}"
        )
    return dict(found)
