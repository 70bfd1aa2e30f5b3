"""``python -m holdfast.localcloud.keeper``: restarts the embedded AWS and the control plane."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from holdfast.localcloud.keeper.restarts import ProcessKeeper
from holdfast.localcloud.processes import LocalCloud
from holdfast.localcloud.supervision import start_log


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="holdfast-keeper", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="home directory of the local cloud")
    parser.add_argument("--port", type=int, required=True, help="of the embedded AWS")
    parser.add_argument("--region", required=True, help="that the control plane serves")
    options = parser.parse_args()
    start_log()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    ProcessKeeper(
        cloud=LocalCloud(home=options.home, port=options.port), region=options.region, stopping=stopping
    ).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
