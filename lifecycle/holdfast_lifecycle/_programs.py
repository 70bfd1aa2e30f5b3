"""Running programs of the node, with a clear failure when one is absent or unhappy."""

import shutil

from holdfast_lifecycle._step import StepError

_SLURM_FOLDER = "/opt/slurm/bin"


def find_program(name: str) -> str:
    """Its path: from PATH, the system folders, or where HyperPod keeps Slurm."""
    found = shutil.which(name) or shutil.which(name, path=f"/usr/sbin:/usr/bin:/sbin:/bin:{_SLURM_FOLDER}")
    if found is None:
        raise StepError(
            expected=f"the program {name} is installed",
            seen=f"it is neither in PATH nor in the system folders nor in {_SLURM_FOLDER}",
            action="choose a HyperPod AMI, which has it, or install it in the image",
        )
    return found


def run_program(name: str, *arguments: str, timeout_s: float = 20.0) -> str:
    """Its output; raises StepError when it cannot be run, fails, or takes too long."""
    import subprocess  # only where a program is run: importing it takes longer than most steps

    command = [find_program(name), *arguments]
    shown = " ".join([name, *arguments])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
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
