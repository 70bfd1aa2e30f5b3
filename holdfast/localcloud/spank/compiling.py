"""Compilation of plugins for this machine's Slurm."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_COMPILE_TIMEOUT_S = 60
_VERSION = Path("/usr/include/slurm/slurm_version.h")


def cannot_compile() -> list[str]:
    needed = {"gcc": "gcc", "slurmd": "slurmd"}
    problems = [
        f"the program {name} is missing; install Debian's package {package}"
        for name, package in needed.items()
        if shutil.which(name, path=SYSTEM_PATH) is None
    ]
    headers = header_version()
    if not headers:
        problems.append("Slurm's header files are missing; install Debian's package libslurm-dev")
    elif not problems and (slurm := _slurm_version()) != headers:
        # A required plugin of another version would stop every srun.
        problems.append(f"Slurm is {slurm} and its header files are of {headers}; install those of one version")
    return problems


def header_version() -> str:
    """Return the version of Slurm's header files, or ""."""
    try:
        number = int(re.findall(r"SLURM_VERSION_NUMBER\s+(0x[0-9a-fA-F]+)", _VERSION.read_text())[0], 16)
    except (OSError, IndexError):
        return ""
    return f"{number >> 16 & 0xFF}.{number >> 8 & 0xFF}.{number & 0xFF}"


def _slurm_version() -> str:
    program = shutil.which("slurmd", path=SYSTEM_PATH) or "slurmd"
    reported = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", reported)
    return ".".join(str(int(part)) for part in found.groups()) if found else "unknown"


def slurm_version() -> tuple[int, int]:
    """Return the installed version of Slurm, such as (22, 5), or zeros."""
    try:
        major, minor = _slurm_version().split(".")[:2]
        return int(major), int(minor)
    except (OSError, ValueError):
        return 0, 0


def compile_plugin(sources: Sequence[Path], *, target: Path) -> None:
    """Compile a plugin; raise OSError with the compiler's output."""
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S, check=False)
    if done.returncode:
        raise OSError(f"gcc could not compile the plugin for Slurm: {done.stderr[-500:]}")
