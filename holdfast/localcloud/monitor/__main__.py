"""``python -m holdfast.localcloud.monitor``: Prometheus and Alertmanager beside the nodes of a local cloud."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from holdfast.localcloud.monitor.monitor import Monitor
from holdfast.localcloud.monitor.programs import MonitorError
from holdfast.localcloud.monitor.settings import settings_of
from holdfast.localcloud.supervision import start_log


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast-monitor", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="home directory of the local cloud")
    options = parser.parse_args()
    start_log()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        Monitor(home=options.home, settings=settings_of(options.home), stopping=stopping).run()
    except (MonitorError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
