import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node.files import is_written, write_whole
from holdfast_lifecycle.node.programs import run_program

_UNITS = "/etc/systemd/system"
_START_S = 90.0
"""systemd's own limit for a start, DefaultTimeoutStartSec."""
_LONGEST_PAUSE_S = 1.0


def is_active(unit: str) -> bool:
    try:
        return run_program("systemctl", "is-active", unit).strip() == "active"
    except StepError as error:
        if "installed" in error.expected:
            raise
        return False


def start(unit: str) -> None:
    try:
        run_program("systemctl", "enable", "--now", unit, timeout_s=_START_S)
    except StepError as error:
        raise StepError(
            expected=f"the service {unit} starts",
            seen=error.seen,
            action=f"read 'systemctl status {unit}' and 'journalctl -u {unit}' on this node",
        ) from error


def stop(unit: str) -> None:
    if is_active(unit):
        run_program("systemctl", "stop", unit, timeout_s=_START_S)


def disable(unit: str) -> None:
    run_program("systemctl", "disable", "--now", unit, timeout_s=_START_S)


def drop_in(context: Context, unit: str) -> Path:
    return context.path(f"{_UNITS}/{unit}.service.d/holdfast.conf")


def add_to_unit(context: Context, unit: str, content: str) -> bool:
    """Add lines to a unit; True if changed."""
    path = drop_in(context, unit)
    if is_written(path, content.encode()):
        return False
    write_whole(path, content.encode())
    run_program("systemctl", "daemon-reload", timeout_s=_START_S)
    return True


def wait_until(is_so: Callable[[], bool], *, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    pause_s = 0.05
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)
    return True


def answers(program: str, *arguments: str) -> Callable[[], bool]:
    """Condition for ``wait_until``: the command succeeds."""

    def ask() -> bool:
        try:
            run_program(program, *arguments, timeout_s=15)
        except StepError as error:
            if "installed" in error.expected:
                raise
            return False
        return True

    return ask


def inactive(units: Sequence[str]) -> list[str]:
    return [unit for unit in units if not is_active(unit)]
