"""Result of a scan of a file system's folder."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.localcloud.hyperpod.fsx.sync import FileStat


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    files: Mapping[str, FileStat]
    unseen: tuple[str, ...] = ()
    """Folders that could not be read, with a slash at the end of each."""

    def has_seen(self, path: str) -> bool:
        """Return True if a path that is not among the files does not exist."""
        return not path.startswith(self.unseen)
