"""The clock agrees with the one clock that every node sees, the shared file system's."""

import time

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import run_program

_LARGEST_SKEW_S = 2.0
_SERVICES = ("chrony", "chronyd", "systemd-timesyncd")


def skew_s(context: Context) -> float:
    """Seconds that the file system's clock is ahead of this node's, beyond the duration of a write; 0 without one."""
    if not context.fsx_mount_path:
        return 0.0
    path = context.path(f"{context.fsx_mount_path}/.holdfast-clock-{context.instance_id}")
    before = time.time()
    try:
        path.write_bytes(b"\n")
        after = time.time()
        given = path.stat().st_mtime
    finally:
        path.unlink(missing_ok=True)
    return min(given - before, 0.0) + max(given - after, 0.0)


def check(context: Context) -> bool:
    return abs(skew_s(context)) <= _LARGEST_SKEW_S


def apply(context: Context) -> None:
    """Let the time service, if any, step the clock; verify judges."""
    if _time_service(context) in ("chrony", "chronyd"):
        run_program("chronyc", "makestep")


def verify(context: Context) -> str:
    skew = skew_s(context)
    service = _time_service(context)
    if abs(skew) > _LARGEST_SKEW_S:
        raise StepError(
            expected=f"this node's clock is within {_LARGEST_SKEW_S:g} s of the file system's",
            seen=f"the file system is {skew:+.1f} s ahead; time service: {service}",
            action="start chronyd with 169.254.169.123 as its server, the Amazon Time Sync Service",
        )
    return f"skew {skew:+.3f} s, time service: {service}"


def _time_service(context: Context) -> str:
    if not context.path("/run/systemd/system").is_dir():
        return "unknown, no systemd"
    units = context.path("/run/systemd/units")
    running = [name for name in _SERVICES if (units / f"invocation:{name}.service").is_symlink()]
    return running[0] if running else "none"
