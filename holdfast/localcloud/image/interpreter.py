"""Python of a node's scripts (``python3``): the AMI's version, where this machine has it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.nodes import Mount, python_mounts

EXPECTED = {"slurm": (3, 10), "eks": (3, 9)}
"""
HyperPod's images: Ubuntu 22.04's Python 3.10 on Slurm, Amazon Linux 2023's 3.9 on EKS.

"/usr/bin/python3 ... will remain Python 3.9 for the life of AL2023": Amazon Linux 2023 user guide;
sagemaker-hyperpod-release-ami-eks.md, python_location.
"""
_SETTINGS = {"slurm": "HOLDFAST_PYTHON_SLURM", "eks": "HOLDFAST_PYTHON_EKS"}
_QUESTION = "import json, sys; print(json.dumps([list(sys.version_info[:2]), sys.base_prefix, sys.executable]))"
_DEADLINE_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    version: tuple[int, int]
    executable: Path
    prefix: Path
    note: str

    @property
    def mounts(self) -> tuple[Mount, ...]:
        found = python_mounts(at="/unused", prefix=self.prefix, base=self.prefix)
        return tuple(mount for mount in found if mount.target != "/unused")


def find(orchestrator: str, *, environ: Mapping[str, str] | None = None) -> Interpreter:
    """Find it by the setting, then PATH, with the AMI's version; else the machine's own."""
    environ = os.environ if environ is None else environ
    desired, setting = EXPECTED[orchestrator], _SETTINGS[orchestrator]
    name = f"python{desired[0]}.{desired[1]}"
    why = f"{name} is not on the PATH and {setting} is not set"
    for path, source in ((environ.get(setting), setting), (shutil.which(name, path=environ.get("PATH")), "PATH")):
        if not path:
            continue
        found = _ask(path)
        if found is not None and found[0] == desired:
            version, prefix, executable = found
            return Interpreter(version=version, executable=executable, prefix=prefix, note=f"{name} of {source}")
        why = f"{path} ({source}) " + ("does not run" if found is None else f"is Python {found[0][0]}.{found[0][1]}")
    own = _ask("/usr/bin/python3") or _ask(sys.executable)
    assert own is not None, "this program runs on a Python"
    version, prefix, executable = own
    note = f"the machine's own python {version[0]}.{version[1]} in place of the AMI's {name}: {why}"
    return Interpreter(version=version, executable=executable, prefix=prefix, note=note)


def _ask(path: str) -> tuple[tuple[int, int], Path, Path] | None:
    try:
        done = subprocess.run(
            [path, "-I", "-c", _QUESTION], capture_output=True, text=True, timeout=_DEADLINE_S, check=True
        )
        version, prefix, executable = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return (version[0], version[1]), Path(prefix), Path(executable)
