"""Writes a repository: all of its files, or none."""

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.cli.terminal import CommandError

MOST_NAMED = 5


def write_repository(folder: Path, files: Mapping[str, str]) -> None:
    """
    Write files into a folder, which is created if it does not exist. Whatever interrupts it, nothing half-made stays.

    Raises:
        CommandError: one of the files exists already, or the folder cannot be written to; names them.
    """
    if taken := existing(folder, files):
        more = f" and {len(taken) - MOST_NAMED} more" if len(taken) > MOST_NAMED else ""
        raise CommandError(
            f"got {folder} with {', '.join(taken[:MOST_NAMED])}{more}; allowed: a folder without the files that "
            "init writes; move them away, or name another folder: holdfast init FOLDER"
        )
    made: list[Path] = []
    try:
        for name, text in files.items():
            path = folder / name
            _make_folders(path.parent, made)
            made.append(path)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            path.chmod(0o755 if path.suffix == ".sh" else 0o644)
    except BaseException as error:
        for path in reversed(made):
            _remove(path)
        if isinstance(error, OSError):
            raise CommandError(f"{error.filename} cannot be written: {error.strerror}; nothing was written") from None
        raise


def existing(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return what a folder has already of the files, or in the place of their folders; sorted."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise CommandError(f"got {folder}, which is not a folder; allowed: a folder, or a name for a new one")
    parents = {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
    blocked = [name for name in parents if os.path.lexists(folder / name) and not (folder / name).is_dir()]
    return sorted([*blocked, *(name for name in files if os.path.lexists(folder / name))])


def _make_folders(folder: Path, made: list[Path]) -> None:
    for one in reversed([folder, *folder.parents]):
        if not one.exists():
            made.append(one)
            one.mkdir()


def _remove(path: Path) -> None:
    if os.path.lexists(path):  # else it was about to be made
        path.rmdir() if path.is_dir() else path.unlink()
