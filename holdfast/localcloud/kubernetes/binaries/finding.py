"""
Find binaries: the folder in ``HOLDFAST_KUBERNETES``, or the cache of the current recipe.

Root runs them, so their owner must be root or this user.
"""

import functools
import json
import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.home import cache_folder
from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.recipe import HYPERKUBE, PROGRAMS, STAND_INS, recipe_key
from holdfast.localcloud.kubernetes.binaries.versions import COMPONENTS, version_flags, was_tried

VARIABLE = "HOLDFAST_KUBERNETES"
RECORDS = "records"
"""Value of the variable for which EKS clusters are records, as if there were no binaries."""
RECORD = "build.json"
ON_NODES = ("kubelet", "kube-proxy")
_ASK_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """Programs of one version of Kubernetes, such as "1.20.2", in a read-only folder."""

    directory: Path
    version: str

    @property
    def etcd(self) -> Path:
        return self.directory / "etcd"

    @property
    def containerd(self) -> Path:
        return self.directory / "containerd"

    @property
    def containerd_shim(self) -> Path:
        return self.directory / "containerd-shim-runc-v2"

    @property
    def ctr(self) -> Path:
        return self.directory / "ctr"

    @property
    def runc(self) -> Path:
        return self.directory / "runc"

    @property
    def cni(self) -> Path:
        """Folder of the CNI plugins bridge, host-local, loopback and portmap."""
        return self.directory / "cni"

    @property
    def stand_ins(self) -> Path | None:
        """Our stand-in for the programs of AWS's images; None in a folder without it."""
        path = self.directory / STAND_INS
        return path if path.exists() else None

    @property
    def tried(self) -> bool:
        """True if the tests have run a cluster of this version."""
        return was_tried(self.version)

    def argv(self, component: str, *, directory: Path | None = None) -> list[str]:
        """Return the command of a component, without flags; ``directory``: folder of the programs on a node."""
        if component not in COMPONENTS:
            raise ValueError(f"got component {component!r}; allowed: {', '.join(COMPONENTS)}")
        place = directory or self.directory
        if (self.directory / component).exists():
            return [str(place / component)]
        return [str(place / HYPERKUBE), component]

    def flags(self, component: str) -> list[str]:
        return version_flags(component, version=self.version)

    def programs(self) -> dict[str, Path]:
        """Return name on a node -> file, without the CNI plugins."""
        alone = [name for name in ON_NODES if (self.directory / name).exists()]
        names = [*(alone if len(alone) == len(ON_NODES) else [*alone, HYPERKUBE])]
        names += ["containerd", "containerd-shim-runc-v2", "ctr", "runc", *([STAND_INS] if self.stand_ins else [])]
        return {name: self.directory / name for name in names}

    def record(self) -> dict[str, Any]:
        """Return the record of ``holdfast kubernetes build``; empty for other folders."""
        try:
            written: dict[str, Any] = json.loads((self.directory / RECORD).read_text())
        except FileNotFoundError:
            return {}
        return written


def uses_records(environment: Mapping[str, str]) -> bool:
    return environment.get(VARIABLE, "").strip() == RECORDS


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the folder of builds: ``${XDG_CACHE_HOME:-~/.cache}/holdfast/kubernetes``."""
    return cache_folder(environment) / "kubernetes"


def find_binaries(environment: Mapping[str, str]) -> Binaries | None:
    """Return the binaries; None without a build, or if EKS clusters are records. Raises: BinariesError."""
    if uses_records(environment):
        return None
    if named := environment.get(VARIABLE, "").strip():
        return read_binaries(Path(named).expanduser().absolute(), named_by=VARIABLE)
    folder = cache_directory(environment) / recipe_key()
    return read_binaries(folder, named_by="the cache") if folder.is_dir() else None


def read_binaries(directory: Path, *, named_by: str) -> Binaries:
    """Return the binaries of a complete folder; ``named_by``: source of its name, for the message."""
    if not directory.is_dir():
        raise BinariesError(
            f"got {directory} from {named_by}, not a folder; create one with: holdfast kubernetes build"
        )
    if lacking := missing_programs(directory):
        raise BinariesError(
            f"{directory} ({named_by}) lacks {', '.join(lacking)}; "
            f"complete a folder of binaries with: holdfast kubernetes build --from {directory}"
        )
    _refuse_what_others_can_change(directory)
    record = directory / RECORD
    if record.exists():
        return Binaries(directory=directory, version=json.loads(record.read_text())["version"])
    unknown = Binaries(directory=directory, version="")
    program = Path(unknown.argv("kube-apiserver")[0])
    version = _asked(tuple(unknown.argv("kube-apiserver")), program.stat().st_mtime_ns)
    return Binaries(directory=directory, version=version)


def missing_programs(directory: Path) -> list[str]:
    """Return missing programs; one program with all components counts as each of them."""
    together = (directory / HYPERKUBE).is_file()
    names = [*(() if together else COMPONENTS), *(name for name in PROGRAMS if name != "cni/portmap")]
    return [name for name in names if not (directory / name).is_file()]


def reported_version(argv: list[str]) -> str:
    """Return the version that a component reports, such as "1.20.2". Raises: BinariesError."""
    output = "cannot be run"
    try:
        done = subprocess.run([*argv, "--version"], capture_output=True, text=True, check=False, timeout=_ASK_S)
        output = f"{done.stdout}{done.stderr}".strip()
        product, version = output.splitlines()[0].rsplit(maxsplit=1)
        if done.returncode == 0 and product == "Kubernetes" and version.startswith("v"):
            return version[1:]
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    except (IndexError, ValueError):
        pass
    raise BinariesError(f"{' '.join(argv)} is not a Kubernetes component that runs here: {output[:200]}")


@functools.cache
def _asked(argv: tuple[str, ...], _changed_ns: int) -> str:
    return reported_version(list(argv))


def _refuse_what_others_can_change(directory: Path) -> None:
    for path in (directory, directory / "cni", *(each for each in directory.iterdir() if each.is_file())):
        status = path.stat()
        if status.st_uid not in (0, os.geteuid()) or stat.S_IMODE(status.st_mode) & 0o022:
            raise BinariesError(
                f"{path} can be changed by others, and root runs it; "
                f"run: chown -R root {directory} && chmod -R go-w {directory}"
            )
