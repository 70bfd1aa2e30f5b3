"""POSIX metadata of S3 objects. Pure. Source: FSx for Lustre guide, "POSIX metadata support for data repositories"."""

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_MODE = 0o755
"""Of a file whose object has none (same page)."""
_KEPT = 0o777 | stat.S_ISVTX  # "FSx for Lustre doesn't import or retain setuid information"
_NANOSECONDS = re.compile(r"(\d{1,19})ns", re.ASCII)
_MILLISECONDS = re.compile(r"\d{1,13}", re.ASCII)
_LARGEST_ID = 2**32 - 2


@dataclass(frozen=True, kw_only=True)
class Posix:
    """Metadata of an imported file; None: the file system's default."""

    mode: int = DEFAULT_MODE
    owner: int | None = None
    group: int | None = None
    mtime_ns: int | None = None


def of_metadata(metadata: Mapping[str, str]) -> Posix:
    """Parse an object's metadata. Values in another form are ignored."""
    return Posix(
        mode=_mode(metadata.get("file-permissions", "")),
        owner=_number(metadata.get("file-owner", "")),
        group=_number(metadata.get("file-group", "")),
        mtime_ns=_time_ns(metadata.get("file-mtime", "")),
    )


def to_metadata(*, mode: int, owner: int | None = None, group: int | None = None, mtime_ns: int) -> dict[str, str]:
    """Return the metadata of a regular file with this ``st_mode``; no owner if none is given."""
    owners = {"file-owner": owner, "file-group": group}
    return {
        "user-agent": "aws-fsx-lustre",
        "file-permissions": f"{stat.S_IFREG | (mode & _KEPT):07o}",
        "file-mtime": f"{mtime_ns}ns",
        **{name: str(value) for name, value in owners.items() if value is not None},
    }


def _mode(text: str) -> int:
    return int(text, 8) & _KEPT if re.fullmatch(r"[0-7]{3,7}", text, re.ASCII) else DEFAULT_MODE


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,10}", text, re.ASCII) and int(text) <= _LARGEST_ID else None


def _time_ns(text: str) -> int | None:
    if found := _NANOSECONDS.fullmatch(text):
        value = int(found[1])
    elif _MILLISECONDS.fullmatch(text):
        value = int(text) * 1_000_000
    else:
        return None
    return value if value < 2**63 else None
