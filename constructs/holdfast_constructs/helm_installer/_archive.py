"""A chart out of an archive of its repository: nothing is written before every file has been judged."""

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

LARGEST_CHART_BYTES = 32 * 1024 * 1024
"""A hundred times the largest chart in use. An archive that holds more under the chart's path is refused."""


class ChartRefusedError(Exception):
    """The archive does not hold the chart that was asked for."""


def read_chart(archive: IO[bytes], path: str) -> dict[str, bytes]:
    """
    The files under ``path``, by their path below it.

    Args:
        archive: A gzipped tar with one folder at its top, as GitHub and ``git archive --prefix`` make them. It is
            read as a stream, once.
        path: The chart's folder, relative to the repository's root.

    Raises:
        ChartRefusedError: Nothing is there, too much is there, or an entry is no plain file below the chart's folder.
    """
    root = PurePosixPath(path).parts
    files: dict[str, bytes] = {}
    size = 0
    with tarfile.open(fileobj=archive, mode="r|gz") as tar:
        for member in tar:
            below = _below(member.name, root)
            if below is None or member.isdir():
                continue
            size += member.size
            content = tar.extractfile(member) if member.isfile() else None
            if content is None or below in files or ".." in PurePosixPath(below).parts:
                raise ChartRefusedError(f"chart {path}: got entry '{member.name}'; allowed: plain files, each once")
            if size > LARGEST_CHART_BYTES:
                raise ChartRefusedError(f"chart {path}: got more than {LARGEST_CHART_BYTES} bytes in the archive")
            files[below] = content.read()
    if "Chart.yaml" not in files:
        raise ChartRefusedError(f"chart {path}: the archive has no {path}/Chart.yaml; got {len(files)} files there")
    return files


def tree_sha256(files: Mapping[str, bytes]) -> str:
    """The digest of a tree: each file's path, length and content, in the order of the paths' bytes."""
    digest = hashlib.sha256()
    for path in sorted(files, key=str.encode):
        digest.update(f"{path}\0{len(files[path])}\0".encode())
        digest.update(files[path])
    return digest.hexdigest()


def verify(files: Mapping[str, bytes], *, path: str, expected_sha256: str) -> None:
    """ChartRefusedError unless the files are the expected ones."""
    actual = tree_sha256(files)
    if actual != expected_sha256:
        raise ChartRefusedError(
            f"chart {path}: got files with digest {actual}; allowed: {expected_sha256}; "
            "the archive is not of the pinned commit, or was changed on its way"
        )


def write_chart(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files below an empty folder."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _below(name: str, root: tuple[str, ...]) -> str | None:
    """The path of an entry below the chart's folder; None when it is elsewhere. The archive's top folder is dropped."""
    parts = name.split("/")[1:]
    if tuple(parts[: len(root)]) != root or len(parts) == len(root):
        return None
    return "/".join(parts[len(root) :])
