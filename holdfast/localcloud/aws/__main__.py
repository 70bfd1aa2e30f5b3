"""``python -m holdfast.localcloud.aws``: the embedded AWS as a process of its own, until SIGTERM or SIGINT."""

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from holdfast.localcloud.aws.host import PortBusyError, serve
from holdfast.localcloud.home import LocalCloudError
from holdfast.localcloud.supervision import start_log

CANNOT_START = 2


def main() -> int:
    arguments = _arguments()
    start_log(level=logging.WARNING, pattern="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("holdfast").setLevel(logging.DEBUG if arguments.verbose else logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        os.umask(0o077)  # what it keeps holds secrets
        server = serve(home=arguments.home, port=arguments.port, hyperpod=arguments.hyperpod)
    except (PortBusyError, LocalCloudError, OSError) as error:
        print(f"embedded AWS: {error}", file=sys.stderr)
        return CANNOT_START
    print(f"embedded AWS: ready at {server.endpoint}", flush=True)
    stop.wait()
    server.stop()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m holdfast.localcloud.aws", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="directory of the local cloud; state is in HOME/aws")
    parser.add_argument("--port", type=int, default=5710, help="port on the loopback addresses (default: 5710)")
    parser.add_argument(
        "--hyperpod",
        choices=("controlled", "simulated"),
        default="controlled",
        help="HyperPod nodes: run by a control plane (default), or simulated",
    )
    parser.add_argument("--verbose", action="store_true", help="log every request")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
