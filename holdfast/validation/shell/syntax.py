"""Syntax check by ``bash -n`` with a deadline, if bash is installed."""

import functools
import re
import shutil
import subprocess

DEADLINE_S = 30.0


def shell_mistake(text: str) -> str | None:
    """First syntax error, or why bash did not read the script; None without one, or without bash."""
    bash = shutil.which("bash")
    first = text.partition("\n")[0]
    if bash is None or not re.match(r"#!.*\b(ba|da)?sh\b", first) or "\r" in text:
        return None
    return _read_by(bash, text)


@functools.cache
def _read_by(bash: str, text: str) -> str | None:
    try:
        # -n reads and runs nothing; neither profile nor BASH_ENV is looked at.
        done = subprocess.run(
            [bash, "--noprofile", "--norc", "-n", "-s"],
            input=text.encode(),
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return f"bash -n did not end within {DEADLINE_S:.0f} s"
    except OSError as error:
        return f"bash could not be run: {error}"
    if done.returncode == 0:
        return None
    output = done.stderr.decode(errors="replace").strip().splitlines()
    return re.sub(r"^\S*bash: ", "", output[0])[:160] if output else f"bash -n ended with {done.returncode}"
