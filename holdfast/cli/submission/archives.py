"""
Archive of a job folder, unpacked on the cluster by the job's own user, never by root.

Links, modes, empty folders and all names are preserved; links resolve with the rights of the job.
"""

import io
import os
import stat
import tarfile
from collections.abc import Callable
from typing import IO

from holdfast.cli.submission.folders import Entry, JobFolder, open_unfollowed
from holdfast.cli.terminal import CommandError, temporary_file

KEPT_MODE = 0o777 | stat.S_ISVTX
"""Bits of a mode that travel; no program runs as its owner on the nodes."""
NOT_THERE_YET = 75
PROGRESS_EVERY = 250
"""Entries."""
UNPACK = f"""[ "$(stat -c %s -- "$1" 2>/dev/null)" = "$2" ] || exit {NOT_THERE_YET}
rm -rf -- "$3" && mkdir -m 0700 -- "$3" &&
tar --extract --preserve-permissions --no-same-owner --file "$1" --directory "$3" && rm -f -- "$1"
"""
"""
For sh with the archive, its size and the folder to make; exits with 75 while the archive has not arrived.

What a node that died meanwhile has begun is begun again.
"""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def temporary_archive(folder: JobFolder, *, progress: Callable[[str], None]) -> tuple[IO[bytes], list[str]]:
    """
    Return an unnamed file with the archive, and paths of Git LFS pointers.

    Raises: CommandError: no room for it, or an entry has changed since it was listed.
    """
    return temporary_file(lambda file: _write(folder, file, progress=progress))


def _write(folder: JobFolder, file: IO[bytes], *, progress: Callable[[str], None]) -> list[str]:
    """Raises: CommandError: an entry has changed since."""
    pointers: list[str] = []
    root = folder.root.stat()
    with tarfile.open(
        fileobj=file, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        archive.addfile(_member(".", root, kind=tarfile.DIRTYPE, mode=root.st_mode | stat.S_IRWXU))
        for number, one in enumerate(folder.entries):
            if number % PROGRESS_EVERY == 0:
                progress(f"packing, {number:,} of {len(folder.entries):,} entries")
            if stat.S_ISDIR(one.info.st_mode):
                archive.addfile(_member(one.path, one.info, kind=tarfile.DIRTYPE))
            elif stat.S_ISLNK(one.info.st_mode):
                member = _member(one.path, one.info, kind=tarfile.SYMTYPE)
                member.linkname = one.target
                archive.addfile(member)
            elif _add_file(archive, folder, one):
                pointers.append(one.path)
    return pointers


def read_entry(folder: JobFolder, entry: Entry) -> bytes:
    """Return the content. Raises: CommandError: the file has changed since it was listed."""
    try:
        with os.fdopen(open_unfollowed(folder.root / entry.path), "rb") as opened:
            same = entry.is_same(os.fstat(opened.fileno()))
            content = opened.read(entry.info.st_size) if same else b""
            if same and len(content) == entry.info.st_size and entry.is_same(os.fstat(opened.fileno())):
                return content
    except OSError as error:
        raise changed(folder, entry, why=error.strerror or str(error)) from None
    raise changed(folder, entry)


def is_lfs_pointer(content: bytes) -> bool:
    return len(content) < 1024 and content.startswith(_LFS_POINTER)


def changed(folder: JobFolder, entry: Entry, *, why: str = "") -> CommandError:
    cause = f" ({why})" if why else ""
    return CommandError(
        f"{str(folder.root / entry.path)!r} changed while it was read{cause}; submit again", exit_code=1
    )


def _add_file(archive: tarfile.TarFile, folder: JobFolder, entry: Entry) -> bool:
    content = read_entry(folder, entry)
    archive.addfile(_member(entry.path, entry.info, kind=tarfile.REGTYPE, size=len(content)), io.BytesIO(content))
    return is_lfs_pointer(content)


def _member(path: str, info: os.stat_result, *, kind: bytes, mode: int | None = None, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path if path == "." else f"./{path}")
    member.type, member.size, member.mtime = kind, size, int(info.st_mtime)
    member.mode = (info.st_mode if mode is None else mode) & KEPT_MODE
    return member
