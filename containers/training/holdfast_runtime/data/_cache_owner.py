"""
Who makes a cache also removes it: the launcher of a node holds it for as long as its job runs.

A launcher that is killed cannot clean up, so the next one on the node does: a cache that nobody has locked belongs to
nobody.
"""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast_runtime.data._cache import PREFIX, ROOT, cache_folder, use_folder


@contextmanager
def own_cache(job: str, *, root: Path = ROOT) -> Iterator[Path]:
    """
    Keep a job's cache through the deaths of its ranks, and remove it at the end.

    Caches of owners that were killed are removed first. The folder is made even if no rank ever uses it.
    """
    remove_abandoned(root=root)
    folder = cache_folder(job, root=root)
    used = use_folder(folder)
    try:
        yield folder
    finally:
        used.close()
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(*, root: Path = ROOT) -> list[Path]:
    """Remove the caches on this node that no living process uses; which they were."""
    removed = []
    for folder in sorted(root.glob(f"{PREFIX}*")):
        with contextlib.suppress(FileNotFoundError, PermissionError), (folder / "used").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder)
            removed.append(folder)
    return removed
