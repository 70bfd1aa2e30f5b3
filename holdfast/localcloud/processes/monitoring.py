"""Start of the monitor of a home, by ``up`` and by the keeper."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.localcloud.home import recognise
from holdfast.localcloud.processes import detached, spawning

if TYPE_CHECKING:
    from holdfast.localcloud.monitor import MonitorAccess

MONITOR = "monitor"


def start_monitor(home: Path, *, rules: Path, cluster: str) -> "MonitorAccess":
    """Start or restart Prometheus and Alertmanager, with checked ``rules``. Raise ProcessError."""
    from holdfast.localcloud.monitor import MonitorSettings, access_of, write_settings

    with detached.starting(name=MONITOR, home=home):
        detached.stop(name=MONITOR, home=home)
        recognise(home)
        write_settings(home, MonitorSettings(rules=rules.read_text(), cluster=cluster))
        _start(home)
    found = access_of(home)
    assert found is not None
    return found


def restart_monitor(home: Path) -> bool:
    """Start it with its last settings; return False if it runs. Raise ProcessError."""
    with detached.starting(name=MONITOR, home=home):
        if detached.find(name=MONITOR, home=home):
            return False
        _start(home)
    return True


def _start(home: Path) -> None:
    from holdfast.localcloud.monitor import forget_access, is_ready

    forget_access(home)
    argv = [sys.executable, "-m", "holdfast.localcloud.monitor", "--home", str(home)]
    spawning.start(name=MONITOR, argv=argv, home=home, ready=lambda: is_ready(home))
