"""Helm chart from local files, uploaded with the app's assets."""

import gzip
import io
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from holdfast_constructs.helm_installer import tree_sha256


@dataclass(frozen=True, kw_only=True)
class ChartFolder:
    name: str
    """Of the release, too."""
    folder: Path

    @property
    def path(self) -> str:
        return self.name

    @property
    def tree_sha256(self) -> str:
        """Digest of its files, verified by the installer."""
        return tree_sha256(self._files)

    def archive(self) -> bytes:
        """Reproducible gzipped tar with one top folder, as GitHub's."""
        written = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=written, mode="wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            for path, content in sorted(self._files.items()):
                member = tarfile.TarInfo(f"chart/{self.path}/{path}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return written.getvalue()

    @cached_property
    def _files(self) -> dict[str, bytes]:
        found = {
            str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }
        if "Chart.yaml" not in found:
            raise ValueError(f"chart {self.name}: got the folder {self.folder}; allowed: one with a Chart.yaml")
        return found
