"""
Your own scripts have succeeded, once per content, after every step of ours and in the order of the environment file.

A script that has succeeded does not run again on the same node unless its content changed.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError

_DONE = "/var/lib/holdfast/scripts"


def _script(context: Context, name: str) -> Path:
    return context.bundle / "scripts" / name


def _mark(context: Context, name: str) -> Path:
    """File that records that this content of the script has succeeded here."""
    try:
        content = _script(context, name).read_bytes()
    except OSError as error:
        raise StepError(
            expected=f"{name} is in the lifecycle bundle",
            seen=str(error),
            action="deploy the lifecycle bundle again",
        ) from error
    return context.path(f"{_DONE}/{Path(name).name}.{hashlib.sha256(content).hexdigest()}")


def check(context: Context) -> bool:
    return all(_mark(context, name).exists() for name in context.scripts)


def apply(context: Context) -> None:
    for name in context.scripts:
        mark = _mark(context, name)
        if mark.exists():
            continue
        script = _script(context, name)
        script.chmod(0o755)  # S3 keeps no modes
        print(f"lifecycle: running {name}", flush=True)
        try:
            code = subprocess.run([script], cwd=context.bundle, stdout=sys.stdout, check=False).returncode
            seen = f"exit code {code}"
        except OSError as error:
            code, seen = 1, str(error)
        if code:
            raise StepError(
                expected=f"{name} ends with exit code 0",
                seen=seen,
                action="read its output above this line, correct it and deploy again",
            )
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def verify(context: Context) -> str:
    missing = [name for name in context.scripts if not _mark(context, name).exists()]
    if missing:
        raise StepError(
            expected="all scripts succeeded",
            seen=f"not yet: {', '.join(missing)}",
            action="check for a program on the node that removes files from " + _DONE,
        )
    return ", ".join(context.scripts)
