import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from holdfast_lifecycle.model import StepError

_SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_SLURM_FOLDERS = "/opt/slurm/bin:/opt/slurm/sbin"


def find_program(name: str) -> str:
    found = next(_places(name), None)
    if found is None:
        raise StepError(
            expected=f"the program {name} is installed",
            seen=f"it is not in PATH, the system folders or {_SLURM_FOLDERS}",
            action="choose a HyperPod AMI, which has it, or install it in the image",
        )
    return found


def _places(name: str) -> Iterator[str]:
    for folder in (*os.environ.get("PATH", os.defpath).split(":"), *_SYSTEM_FOLDERS, *_SLURM_FOLDERS.split(":")):
        path = Path(folder or ".", name)
        if path.is_file() and os.access(path, os.X_OK):
            yield str(path)


def has_program(name: str) -> bool:
    try:
        find_program(name)
    except StepError:
        return False
    return True


def run_program(name: str, *arguments: str, timeout_s: float = 20.0, text: Optional[str] = None) -> str:
    """Return the output; raises StepError. Pass secrets as ``text``: arguments are visible, and part of errors."""
    command = [find_program(name), *arguments]
    shown = " ".join([name, *arguments])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, input=text)
    except subprocess.TimeoutExpired:
        raise StepError(
            expected=f"'{shown}' answers within {timeout_s:g} s", seen="it did not", action=f"run '{shown}' by hand"
        ) from None
    if done.returncode != 0:
        raise StepError(
            expected=f"'{shown}' succeeds",
            seen=f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()}",
            action=f"run '{shown}' by hand",
        )
    return done.stdout
