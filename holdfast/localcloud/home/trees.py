"""
Removal of folders of any depth.

``shutil.rmtree`` recurses, which fails at about a thousand levels, and paths end at 4096 bytes. Here folders are moved
up beside the first one before they are emptied.
"""

import contextlib
import itertools
import os
import stat
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Remove a file, link or folder; a missing one is no error. Raise OSError, such as for a mount point."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(info.st_mode):
        path.unlink(missing_ok=True)
        return
    top = os.open(path, _FOLDER)
    try:
        _empty(top)
    finally:
        os.close(top)
    path.rmdir()


def remove_tree_quietly(path: Path) -> None:
    with contextlib.suppress(OSError):
        remove_tree(path)


def _empty(top: int) -> None:
    names = (f".holdfast-removed-{number}" for number in itertools.count())
    waiting = _unlink_files(top)
    while waiting:
        name = waiting.pop()
        try:
            folder = os.open(name, _FOLDER, dir_fd=top)
        except FileNotFoundError:
            continue
        try:
            for below in _unlink_files(folder):
                fresh = next(each for each in names if not _exists(each, top))
                os.rename(below, fresh, src_dir_fd=folder, dst_dir_fd=top)
                waiting.append(fresh)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)


def _unlink_files(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
