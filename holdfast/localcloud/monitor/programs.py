"""Debian's prometheus and prometheus-alertmanager: presence, and checks of rule files."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROMETHEUS, ALERTMANAGER, PROMTOOL = "prometheus", "prometheus-alertmanager", "promtool"
PROGRAMS = (PROMETHEUS, ALERTMANAGER, PROMTOOL)
CHECK_S = 60.0


class MonitorError(Exception):
    """The monitor cannot run; the message has the fix."""


def missing() -> Sequence[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]


def check_rules(file: Path) -> None:
    """Check a file of alert rules with promtool. Raise MonitorError."""
    if absent := missing():
        raise MonitorError(
            f"{', '.join(absent)} not found in PATH; install Debian's packages with: make monitoring, "
            "or leave --monitor out"
        )
    done = subprocess.run(
        [PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, timeout=CHECK_S, check=False
    )
    if done.returncode != 0:
        raise MonitorError(f"{file} is not a Prometheus rules file: {(done.stderr or done.stdout).strip()}")
