"""The control plane as a process: ``python -m holdfast.localcloud.hyperpod --home DIR --endpoint URL``."""

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.localcloud.hyperpod.api import DEFAULT_REGION
from holdfast.localcloud.hyperpod.control import ControlPlane
from holdfast.localcloud.kubernetes import find_binaries
from holdfast.localcloud.nodes import Fleet
from holdfast.localcloud.processes import KeptProcess, LocalCloud
from holdfast.localcloud.supervision import start_log


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="holdfast-hyperpod", description="The local HyperPod control plane.")
    parser.add_argument("--home", type=Path, required=True, help="home directory of the local cloud")
    parser.add_argument("--endpoint", required=True, help="URL of the embedded AWS, such as http://localhost:5710")
    parser.add_argument("--region", default=os.environ.get("AWS_REGION", DEFAULT_REGION))
    options = parser.parse_args()
    start_log()
    problems = Fleet.check_host()
    if problems:
        sys.stderr.write("this machine cannot run nodes: " + "; ".join(problems) + "\n")
        return 1
    home = options.home.absolute()
    cloud = LocalCloud(home=home, port=urlsplit(options.endpoint).port or 80)
    restart_keeper = partial(cloud.restart_keeper, region=options.region)
    plane = ControlPlane(
        home=home,
        endpoint=options.endpoint,
        region=options.region,
        binaries=partial(find_binaries, os.environ),
        kept=(KeptProcess.recorded("keeper", home=home, start=restart_keeper),),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: plane.stop())
    ready = home / "run" / "hyperpod.ready"
    ready.parent.mkdir(parents=True, exist_ok=True)
    try:
        plane.run(on_ready=ready.touch)
    finally:
        ready.unlink(missing_ok=True)
    # Threads that wait for a node's script must not keep the process: the next control plane goes on from the records.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
