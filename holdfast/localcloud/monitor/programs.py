"""Debian's prometheus and prometheus-alertmanager: whether they are here, and what is wrong with a file of rules."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROMETHEUS, ALERTMANAGER, PROMTOOL = "prometheus", "prometheus-alertmanager", "promtool"
PROGRAMS = (PROMETHEUS, ALERTMANAGER, PROMTOOL)
CHECK_S = 60.0


class MonitorError(Exception):
    """The monitor cannot run; the message says what to do."""


def missing() -> Sequence[str]:
    """Programs that are not in PATH."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def check_rules(file: Path) -> None:
    """
    Ask promtool about a file of alert rules.

    Raises:
        MonitorError: the programs are not here, or this is no file of rules.
    """
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
