"""Restart decisions. Pure; table of Restart= in systemd.service(5)."""

from __future__ import annotations

import signal

from .units import Unit, statuses

_CLEAN_SIGNALS = frozenset(-number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))
_POLICIES = {
    "success": {"always", "on-success"},
    "exit-code": {"always", "on-failure"},
    "signal": {"always", "on-failure", "on-abnormal", "on-abort"},
    "core-dump": {"always", "on-failure", "on-abnormal", "on-abort"},
    "timeout": {"always", "on-failure", "on-abnormal"},
    "protocol": {"always", "on-failure"},
    "resources": {"always", "on-failure"},
    "watchdog": {"always", "on-failure", "on-abnormal", "on-watchdog"},
}
_CORE_SIGNALS = frozenset(
    -number for number in (signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE)
)


def result_of(unit: Unit, status: int, *, dumped: bool = False) -> str:
    """Return the service result of an exit code, or minus a signal number."""
    clean = {0} | statuses(unit, "SuccessExitStatus")
    if unit.type != "oneshot":
        clean |= _CLEAN_SIGNALS
    if status in clean:
        return "success"
    if status >= 0:
        return "exit-code"
    return "core-dump" if dumped or status in _CORE_SIGNALS else "signal"


def should_restart(unit: Unit, *, result: str, status: int) -> bool:
    if status in statuses(unit, "RestartPreventExitStatus"):
        return False
    if status in statuses(unit, "RestartForceExitStatus"):
        return True
    return unit.one("Service", "Restart", "no") in _POLICIES.get(result, set())


def allowed(*, starts: list[float], now: float, interval: float, burst: int) -> bool:
    """Return True if StartLimitBurst= within StartLimitIntervalSec= allows a start after ``starts``."""
    return interval <= 0 or burst <= 0 or len([when for when in starts if now - when < interval]) < burst
