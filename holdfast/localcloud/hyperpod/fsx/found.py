"""What one look at a folder of a file system found, and where it could not look."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.localcloud.hyperpod.fsx.sync import FileStat


@dataclass(frozen=True, kw_only=True)
class Found:
    """One look."""

    files: Mapping[str, FileStat]
    unseen: tuple[str, ...] = ()
    """Folders that could not be read, with a slash at the end of each."""

    def has_seen(self, path: str) -> bool:
        """Whether a path that is not among the files is really not there."""
        return not path.startswith(self.unseen)
