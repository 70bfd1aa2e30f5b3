"""
Plan of a data repository association, from two listings and the record of the last copies. Pure.

The record has, per path, object and file when they were last equal. A side that equals its record has not changed, so
nothing is copied back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

NEW, CHANGED, DELETED = "NEW", "CHANGED", "DELETED"


@dataclass(frozen=True, kw_only=True)
class ObjectStat:
    etag: str
    size: int


@dataclass(frozen=True, kw_only=True)
class FileStat:
    size: int
    mtime_ns: int
    at_rest: bool = True
    """False: it changed recently, may still be written to, and is not exported yet."""


@dataclass(frozen=True, kw_only=True)
class SyncEntry:
    etag: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True)
class SyncPlan:
    """Paths to copy or delete, sorted."""

    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    delete_files: tuple[str, ...] = ()
    delete_objects: tuple[str, ...] = ()
    forget: tuple[str, ...] = field(default=())
    """Paths that are on neither side any more."""


def plan(
    *,
    objects: Mapping[str, ObjectStat],
    files: Mapping[str, FileStat],
    book: Mapping[str, SyncEntry],
    imports: frozenset[str],
    exports: frozenset[str],
) -> SyncPlan:
    """
    Compare both sides with the record.

    ``objects`` may be the record's if nothing is imported, so that the bucket need not be listed. If both sides
    changed, the object wins with imports: the bucket is the durable copy.
    """
    found: dict[str, list[str]] = {"import": [], "export": [], "delete_file": [], "delete_object": [], "forget": []}
    for path in sorted(objects.keys() | files.keys() | book.keys()):
        verb = _verb(objects.get(path), files.get(path), book.get(path), imports=imports, exports=exports)
        if verb:
            found[verb].append(path)
    return SyncPlan(
        imports=tuple(found["import"]),
        exports=tuple(found["export"]),
        delete_files=tuple(found["delete_file"]),
        delete_objects=tuple(found["delete_object"]),
        forget=tuple(found["forget"]),
    )


def _verb(
    remote: ObjectStat | None,
    local: FileStat | None,
    entry: SyncEntry | None,
    *,
    imports: frozenset[str],
    exports: frozenset[str],
) -> str:
    change = CHANGED if entry else NEW
    if remote and not (entry and remote.etag == entry.etag) and change in imports:
        return "import"
    if local and not (entry and (local.size, local.mtime_ns) == (entry.size, entry.mtime_ns)):
        return "export" if change in exports and local.at_rest else ""
    if entry is None:
        return ""
    if remote is None and local is None:
        return "forget"
    if remote is None and DELETED in imports:
        return "delete_file"
    if local is None and remote is not None and remote.etag == entry.etag and DELETED in exports:
        return "delete_object"
    return ""
