"""
What is in a folder of a file system: its regular files, and the folders that could not be read.

Users of the nodes name and nest what is here; no name and no depth may keep the rest from being found.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.localcloud.hyperpod._sync import FileStat


@dataclass(frozen=True, kw_only=True)
class Found:
    """One look."""

    files: Mapping[str, FileStat]
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Folder, with a slash at its end -> why it could not be read."""

    def has_seen(self, path: str) -> bool:
        """Whether a path that is not among the files is really not there."""
        return not any(path.startswith(folder) for folder in self.unseen)


def scan(root: Path, *, at_rest_before_ns: int, hidden: str) -> Found:
    """Regular files below ``root``, with whether they have been left alone for a while; links are not followed."""
    files: dict[str, FileStat] = {}
    unseen: dict[str, str] = {}
    folders = [(str(root), "")]
    while folders:
        folder, prefix = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unseen[prefix] = f"the folder cannot be read: {error.strerror}"
            continue
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, f"{prefix}{entry.name}/"))
                elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(hidden):
                    info = entry.stat(follow_symlinks=False)
                    rests = info.st_mtime_ns < at_rest_before_ns
                    files[prefix + entry.name] = FileStat(size=info.st_size, mtime_ns=info.st_mtime_ns, at_rest=rests)
    return Found(files=files, unseen=unseen)
