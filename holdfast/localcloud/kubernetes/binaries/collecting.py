"""Collect compiled, Debian's and official programs in one folder; identify folders of official ones."""

import hashlib
import os
import shutil
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.finding import reported_version
from holdfast.localcloud.kubernetes.binaries.recipe import FOLDERS, PROGRAMS, recipe_key
from holdfast.localcloud.kubernetes.binaries.versions import COMPONENTS


def collect(work: Path, *, official: Path | None) -> None:
    """Fill ``work/result`` from ``official``, ``work/built`` and Debian's ``work/tree``, in this order."""
    result = work / "result"
    shutil.rmtree(result, ignore_errors=True)
    (result / "cni").mkdir(parents=True)
    for folder in (result, result / "cni"):
        folder.chmod(0o755)
    for name, (_, path) in PROGRAMS.items():
        _place(official_program(official, name) or work / "tree" / path, result / name)
    for name in COMPONENTS:
        if found := official_program(official, name):
            _place(found, result / name)
    for name in FOLDERS:
        if (work / "built" / name).exists():
            _place(work / "built" / name, result / name)


def official_program(official: Path | None, name: str) -> Path | None:
    """Return a program in a folder of official binaries; CNI plugins may be in ``cni``."""
    if official is None:
        return None
    return next((path for path in (official / name, official / Path(name).name) if path.is_file()), None)


def official_version(official: Path) -> str:
    """Return the version that all five components report. Raises: BinariesError."""
    if lacking := [name for name in COMPONENTS if not official_program(official, name)]:
        raise BinariesError(
            f"{official} lacks {', '.join(lacking)}; put the five components of one version there, "
            "from kubernetes-server-linux-ARCHITECTURE.tar.gz of a release"
        )
    versions = {name: reported_version([str(official / name)]) for name in COMPONENTS}
    if len(set(versions.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        raise BinariesError(
            f"the components in {official} are of several versions ({listed}); take them from one release"
        )
    return versions["kube-apiserver"]


def official_key(official: Path) -> str:
    """Return 16 hexadecimal digits of the folder's programs and the recipe."""
    digest = hashlib.sha256(recipe_key().encode())
    for name in (*COMPONENTS, *PROGRAMS):
        if found := official_program(official, name):
            with found.open("rb") as file:
                digest.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _place(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o755)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())  # after a power cut a folder that is there has to be whole
