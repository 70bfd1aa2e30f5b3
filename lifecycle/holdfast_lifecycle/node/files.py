"""Atomic writes of files, and copies of directories."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

_SYNCS_AT_ONCE = 16
_BEGIN, _END = "# holdfast: begin, written at node creation", "# holdfast: end"


def write_whole(path: Path, content: bytes, *, mode: int = 0o644, owner: Optional[tuple[int, int]] = None) -> None:
    """Replace a file atomically, after it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _unfinished(path)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor, no path
        os.fchmod(descriptor, mode)
        if owner is not None:
            os.fchown(descriptor, *owner)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    unfinished.replace(path)


def is_written(path: Path, content: bytes, *, mode: int = 0o644) -> bool:
    try:
        return path.read_bytes() == content and path.stat().st_mode & 0o7777 == mode
    except OSError:
        return False


def with_lines(text: str, lines: Iterable[str]) -> str:
    """Put our lines at the end of a foreign file, in place of earlier ones."""
    kept: list[str] = []
    ours = False
    for line in text.splitlines():
        ours = ours or line == _BEGIN
        if not ours:
            kept.append(line)
        ours = ours and line != _END
    return "".join(f"{line}\n" for line in [*kept, _BEGIN, *lines, _END])


def copy_folder(source: Path, target: Path, *, owner: tuple[int, int]) -> None:
    """Copy a directory under a temporary name, and rename it when all is on the disk; remains are removed."""
    unfinished = target.with_name(f"{target.name}.part")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    shutil.copytree(source, unfinished, symlinks=True, ignore=_no_sockets)
    own_folder(unfinished, owner=owner)
    # At the same time, so that the file system writes its journal once for many.
    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
        list(pool.map(_sync, [*_files(unfinished), unfinished]))
    unfinished.rename(target)
    _sync(target.parent)


def fill_folder(source: Path, target: Path, *, owner: tuple[int, int]) -> None:
    """Copy what the target lacks, even while others write there; ``*.new`` files are unfinished."""
    for path in sorted(_files(source)):
        place = target / path.relative_to(source)
        if path.is_dir():
            with contextlib.suppress(FileExistsError):
                place.mkdir(mode=0o700)
                os.chown(place, *owner)
        elif path.is_file() and path.suffix != ".new":
            unfinished = _unfinished(place)
            shutil.copy2(path, unfinished)
            os.chown(unfinished, *owner)
            _sync(unfinished)
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, place)
            unfinished.unlink()
    _sync(target)


def own_folder(folder: Path, *, owner: tuple[int, int]) -> None:
    folder.chmod(0o700)
    for path in [folder, *_files(folder)]:
        state = path.lstat()
        if (state.st_uid, state.st_gid) != owner:
            os.chown(path, *owner, follow_symlinks=False)


def point_to(link: Path, target: Path) -> None:
    fresh = _unfinished(link)
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _unfinished(path: Path) -> Path:
    """Unique name across nodes: several may write the same file of a shared file system."""
    return path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.tmp")


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_socket()]


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            yield Path(place, name)


def _sync(path: Path) -> None:
    if path.is_symlink():
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
