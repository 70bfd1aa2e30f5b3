"""
Install what this checkout needs into its virtual environment: ``scripts/install_packages.py packages|torch|aws-cli``.

The download size is printed first, and checked against free space. A machine without a GPU gets PyTorch without CUDA,
unless pip's settings name an index. Run with the environment's own Python.
"""

import argparse
import contextlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-dev.txt"
TORCH = (ROOT / "examples" / "bytelm" / "requirements.txt", ROOT / "tests" / "requirements-torch.txt")
AWS_CLI = ROOT / "requirements-aws-cli.txt"
UV = "uv==0.13.8"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own, of builds such as 2.13.0+cpu: other files than PyPI's, so the requirements have no hashes.
Used as the only index: of two, each would be asked for every name."""

WHERE = re.compile(r"^[^=]*\.(index-url|extra-index-url|find-links|no-index)=", re.MULTILINE)
"""Settings of pip that say where packages are, as ``pip config list`` prints them."""
BROKEN = re.compile(r"(Failed to establish|Cannot connect to proxy|certificate verify failed|[Rr]ead timed out)[^')]*")
OTHER_VERSIONS = "ERROR: Ignored the following versions"
"""Begin of pip's line about versions for another Python, which stands in front of its reason."""
LINE_EVERY_S = 10.0
NVIDIA, DISPLAY = "0x10de", "0x03"
"""Vendor of a PCI device, and how the class of a GPU begins: as in /sys/bus/pci/devices."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """
    Args:
        what: As shown to users.
        fetched_mb: Megabytes of all wheels, for x86-64, Python 3.13 and the versions pinned on 2026-11-28.
        installed_mb: Megabytes on disk.
    """

    what: str
    fetched_mb: int
    installed_mb: int


PACKAGES = Download(what="Python packages", fetched_mb=400, installed_mb=1700)
CPU = Download(what="PyTorch for CPUs", fetched_mb=200, installed_mb=900)
CUDA = Download(what="PyTorch with CUDA", fetched_mb=2700, installed_mb=4700)


class SetupError(Exception):
    """An installation failed; the message has cause and fix."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Install what this checkout needs.")
    parser.add_argument("what", choices=("packages", "torch", "aws-cli"))
    try:
        what = parser.parse_args().what
        if what == "packages":
            install_packages()
        elif what == "aws-cli":
            install_aws_cli(Path(sys.prefix, "share", "holdfast", "aws-cli"))
        else:
            install_torch(files=TORCH, cpu_index=CPU_INDEX, gpu=has_gpu())
    except SetupError as error:
        sys.exit(str(error))


def install_packages() -> None:
    if is_installed("aws_cdk"):
        print(f"installing {PACKAGES.what}", flush=True)
    else:
        announce(PACKAGES)
    pip_install(UV)
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--compile-bytecode"]
    options = ("--require-hashes", "-r", str(LOCK))
    # uv knows nothing of pip's settings; where it finds no packages, pip may, and says why not.
    if waited([*uv, "--python", sys.executable, *options]).returncode:
        pip_install(*options)


def install_aws_cli(place: Path) -> None:
    """
    Install the nodes' AWS CLI in an environment of its own: it needs another botocore than Holdfast. On failure nodes
    have none.
    """
    print("installing the AWS CLI of nodes: 20 MB to download", flush=True)
    python, options = str(place / "bin" / "python"), ("--require-hashes", "-r", str(AWS_CLI))
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(place)], check=True)
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--compile-bytecode"]
    if not waited([*uv, "--python", python, *options]).returncode:
        return
    command = [*PIP, "--python", python, "install", "--quiet", *options]
    done = waited(command)
    if done.returncode:
        shutil.rmtree(place)
        print(f"note: not installed, nodes have no aws: {reason(done.stderr)}", flush=True)


def install_torch(*, files: Sequence[Path], cpu_index: str, gpu: bool, elsewhere: Sequence[str] = ()) -> None:
    """
    Install PyTorch and its dependants.

    Args:
        files: Requirements; torch's is exact.
        cpu_index: Of builds without CUDA.
        gpu: This machine has one.
        elsewhere: Options of pip for all other downloads.
    """
    settings = subprocess.run([*PIP, "config", "list"], check=True, text=True, stdout=subprocess.PIPE).stdout
    if is_installed("torch"):
        print("installing PyTorch", flush=True)
    elif names_an_index(settings):
        print(f"installing PyTorch from pip's index: at most {CUDA.fetched_mb} MB to download", flush=True)
        check_room(CPU)
    elif gpu:
        announce(CUDA)
    else:
        announce(CPU)
        only_here = ("--no-deps", "--index-url", cpu_index, "--retries", "1", "--timeout", "15")
        command = [*PIP, "install", "--quiet", *only_here, required(files, "torch")]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            print(f"{cpu_index} has no build for this machine or is unreachable: using PyPI", flush=True)
            announce(CUDA)
    pip_install(*elsewhere, *(part for path in files for part in ("-r", str(path))))


def announce(download: Download) -> None:
    print(f"installing {download.what}: {download.fetched_mb} MB to download", flush=True)
    check_room(download)


def check_room(download: Download) -> None:
    """Check free space of the environment and of temporary files; raises SetupError."""
    environment, temporary = Path(sys.prefix), Path(tempfile.gettempdir())
    needed = {environment: download.installed_mb, temporary: download.fetched_mb}
    if environment.stat().st_dev == temporary.stat().st_dev:
        needed = {environment: download.installed_mb + download.fetched_mb}
    for place, megabytes in needed.items():
        free = shutil.disk_usage(place).free // 10**6
        if free < megabytes:
            hint = ", or name another folder with TMPDIR" if place == temporary else ""
            raise SetupError(
                f"got {free} MB free in {place}; {download.what} need {megabytes} MB there; free some space{hint}"
            )


def has_gpu(*, root: Path = Path("/")) -> bool:
    """True for NVIDIA's, with or without a driver."""
    if any((root / "proc/driver/nvidia/gpus").glob("*")):
        return True
    devices = (root / "sys/bus/pci/devices").glob("*")
    return any(_read(each / "vendor") == NVIDIA and _read(each / "class").startswith(DISPLAY) for each in devices)


def names_an_index(settings: str) -> bool:
    """True if pip's configuration or environment names an index."""
    return WHERE.search(settings) is not None


def required(files: Sequence[Path], name: str) -> str:
    lines = (line.strip() for path in files for line in path.read_text().splitlines())
    return next(line for line in lines if line.startswith(f"{name}=="))


def is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def pip_install(*arguments: str) -> None:
    """Run pip; raises SetupError."""
    done = waited([*PIP, "install", "--quiet", *arguments])
    if done.returncode:
        raise SetupError(f"pip could not install {arguments[-1]}: {reason(done.stderr)}; fix this and run make again")


def waited(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command that prints nothing, with a line every ten seconds."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                errors = child.communicate(timeout=LINE_EVERY_S)[1]
                return subprocess.CompletedProcess(command, child.returncode, "", errors)
            print(f"  still installing after {time.monotonic() - began:.0f} s", flush=True)


def reason(output: str) -> str:
    """First error: without a network, pip's last line is misleading."""
    if broken := BROKEN.search(output):
        return broken[0]
    lines = [line for line in output.splitlines() if not line.startswith(OTHER_VERSIONS)]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["terminated"]
    return errors[0].removeprefix("ERROR: ").partition(" (from versions")[0]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
